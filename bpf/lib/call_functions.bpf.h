/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
/*
 * Programs on the kernel's functions of single calls: whoever makes another call pays nothing. The
 * tool names the functions and loads as many as it needs (probe/call_points.c). Includers define
 *
 *   call_entered(regs)           the registers of the call's entry
 *   call_returned(result)
 */
#ifndef BPF_LIB_CALL_FUNCTIONS_BPF_H
#define BPF_LIB_CALL_FUNCTIONS_BPF_H

#define CALL_FUNCTION(n)                                                                           \
	SEC("fentry")                                                                              \
	int on_function##n##_enter(__u64 *ctx)                                                     \
	{                                                                                          \
		return call_entered((struct pt_regs *)ctx[0]);                                     \
	}                                                                                          \
	SEC("fexit")                                                                               \
	int on_function##n##_exit(__u64 *ctx)                                                      \
	{                                                                                          \
		return call_returned((__s64)ctx[1]);                                               \
	}

CALL_FUNCTION(0)
CALL_FUNCTION(1)
CALL_FUNCTION(2)
CALL_FUNCTION(3)
CALL_FUNCTION(4)
CALL_FUNCTION(5)
CALL_FUNCTION(6)
CALL_FUNCTION(7)

#endif
