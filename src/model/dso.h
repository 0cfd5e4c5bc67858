/* SPDX-License-Identifier: BSD-2-Clause */
#ifndef INSPECT_MODEL_DSO_H
#define INSPECT_MODEL_DSO_H

#include <inspect/process.h>

int dso_table_init(struct dso_table *t);
void dso_table_release(struct dso_table *t);

#endif
