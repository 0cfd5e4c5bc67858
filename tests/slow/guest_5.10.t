#!/bin/bash
# SPDX-License-Identifier: BSD-2-Clause
. "$(dirname "$0")/guest.sh" 5.10 'debian-security bullseye-security'
