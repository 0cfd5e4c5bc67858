#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
# As tests/cmd/unwind_kinds.t, long enough to tell 99 % from 98 %, with libcrypto and Rust.
UNWIND_KINDS_MS=1500 exec bash "$(dirname "$0")/../cmd/unwind_kinds.t"
