# SPDX-License-Identifier: BSD-2-Clause
# make fuzz [T=name] [SECONDS=300]: each target of tests/fuzz under libFuzzer with ASan and UBSan.
# Its corpus is tests/fuzz/corpus/NAME, which is not changed; what was found new stays in
# $(B)/fuzz/corpus/NAME, and an input that fails in $(B)/fuzz.

FUZZ_CC ?= clang
SECONDS ?= 300
FUZZ_SAN := address,undefined
FUZZ_FLAGS = -std=gnu11 -D_GNU_SOURCE -O1 -g -fno-omit-frame-pointer $(WARNINGS) \
             -fno-sanitize-recover=all

fuzz_src := $(wildcard tests/fuzz/fuzz_*.c)
fuzz_obj := $(lib_src:src/%.c=$(B)/fuzz/obj/%.o)
fuzz_targets := $(fuzz_src:tests/fuzz/%.c=$(B)/fuzz/%)

$(B)/fuzz/obj/%.o: src/%.c $(B)/flags | $(scripts) $(styles) $(skeletons)
	$(call say,FUZZ,$<)
	@mkdir -p $(@D)
	$(Q)$(FUZZ_CC) $(FUZZ_FLAGS) $(ALL_CPPFLAGS) -fsanitize=fuzzer-no-link,$(FUZZ_SAN) \
	  -MMD -MP -c $< -o $@

$(B)/fuzz/libinspect.a: $(fuzz_obj)
	@rm -f $@
	$(Q)$(AR) rcs $@ $(fuzz_obj)

$(B)/fuzz/%: tests/fuzz/%.c tests/fuzz/fuzz.h $(B)/fuzz/libinspect.a
	$(call say,FUZZ,$<)
	$(Q)$(FUZZ_CC) $(FUZZ_FLAGS) $(ALL_CPPFLAGS) -fsanitize=fuzzer,$(FUZZ_SAN) $< \
	  $(B)/fuzz/libinspect.a $(LIBS) -o $@

-include $(fuzz_obj:.o=.d)

.PHONY: fuzz fuzz-programs
fuzz-programs: $(fuzz_targets)

fuzz: $(or $(T:%=$(B)/fuzz/fuzz_%),$(fuzz_targets))
	@O=$(B) tests/fuzz/run $(SECONDS) $(^F)
