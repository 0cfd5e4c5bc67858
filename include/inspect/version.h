/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef INSPECT_VERSION_H
#define INSPECT_VERSION_H

#define INSPECT_VERSION "0.1"

#endif
