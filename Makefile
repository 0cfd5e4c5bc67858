# SPDX-License-Identifier: BSD-2-Clause
#
# make               build/inspect
# make demo | test   everything from nothing: packages, build, and a profile or the tests
# make help          the other targets
#
# O=dir (output folder), CC=clang, CFLAGS=…, SAN=address,undefined (goes to $(O)-san), V=1

O ?= build
PREFIX ?= /usr/local
CC ?= cc
CXX ?= c++
AR ?= ar
BPF_CLANG ?= clang
BPF_STRIP ?= $(firstword $(wildcard /usr/bin/llvm-strip /usr/bin/llvm-strip-*) llvm-strip)
BPFTOOL ?= $(firstword $(wildcard /usr/sbin/bpftool /usr/bin/bpftool) bpftool)
SCDOC ?= scdoc
GO ?= go
CFLAGS ?= -O2 -g

B := $(O)$(if $(SAN),-san)
Q := $(if $(V),,@)
say = $(if $(V),,@printf '%-8s%s\n' $(1) $(2))

WARNINGS := -Wall -Wextra -Wshadow -Wvla -Werror
SAN_FLAGS := $(if $(SAN),-fsanitize=$(SAN) -fno-sanitize-recover=all)
ALL_CFLAGS = -std=gnu11 -D_GNU_SOURCE $(CFLAGS) -fno-omit-frame-pointer $(WARNINGS) $(SAN_FLAGS)
ALL_CPPFLAGS = -Iinclude -Ibpf -I$(B)/gen $(CPPFLAGS)
ALL_LDFLAGS = $(SAN_FLAGS) $(LDFLAGS)
# clang looks for <asm/types.h> among the headers of its target, of which bpf has none. The second
# folder is that of a cross compiler.
multiarch := $(shell $(CC) -print-multiarch)
BPF_FLAGS = -target bpf -D__TARGET_ARCH_$(if $(findstring aarch64,$(multiarch)),arm64,x86) -O2 -g \
            -Wall -Werror -Iinclude -Ibpf -idirafter /usr/include/$(multiarch) \
            -idirafter /usr/$(multiarch)/include
WORKLOAD_FLAGS = -O2 -g -fno-omit-frame-pointer -pthread -D_GNU_SOURCE -Wall

bpf_src := $(wildcard bpf/*.bpf.c)
lib_src := $(wildcard src/*/*.c)
lib_obj := $(lib_src:src/%.c=$(B)/obj/%.o)
main_obj := $(B)/obj/main.o
unit := $(patsubst tests/unit/%.c,$(B)/tests/%,$(wildcard tests/unit/test_*.c))
workloads := $(patsubst tests/workloads/%.c,$(B)/workloads/%,$(wildcard tests/workloads/*.c)) \
             $(patsubst tests/workloads/%.cc,$(B)/workloads/%,$(wildcard tests/workloads/*.cc)) \
             $(if $(shell command -v $(GO)),$(patsubst tests/workloads/%.go,$(B)/workloads/%,$(wildcard tests/workloads/*.go)))
# musl is not everywhere: programs that want its specs are built where they are.
ifeq ($(wildcard /usr/lib/x86_64-linux-musl/musl-gcc.specs),)
workloads := $(filter-out $(B)/workloads/uw_musl%,$(workloads))
endif
bench_programs := $(patsubst tests/bench/%.c,$(B)/bench/%,$(wildcard tests/bench/*.c))
man := $(patsubst man/%.scd,$(B)/man/%,$(wildcard man/*.scd))
scripts := $(patsubst src/render/%.js,$(B)/gen/%_js.h,$(wildcard src/render/*.js))
tables := $(patsubst src/gpu/%.tsv,$(B)/gen/%.tsv.h,$(wildcard src/gpu/*.tsv))
styles := $(patsubst src/render/%.css,$(B)/gen/%_css.h,$(wildcard src/render/*.css))
bpf_obj := $(bpf_src:bpf/%.c=$(B)/bpf/%.o)
skeletons := $(bpf_src:bpf/%.bpf.c=$(B)/gen/%.skel.h)

LIBS := $(if $(bpf_src),-lbpf) -ldw -lelf -llzma -lz -lzstd -liberty -lm -pthread

.DELETE_ON_ERROR:
.SUFFIXES:
.PHONY: all help deps demo test test-all cross lint bench accuracy docs test-programs man install uninstall clean FORCE

all: $(B)/inspect

help:
	@echo 'make                     build $(B)/inspect'
	@echo 'make demo                install what is missing, build, profile a small program'
	@echo 'make test [T=NAME]       install what is missing, build, run the tests (or one)'
	@echo 'make test-all            the slow tests too'
	@echo 'make fuzz [T=NAME] [SECONDS=300]   the parsers under libFuzzer'
	@echo 'make cross               compile it, BPF too, for aarch64 (linked and run by test-all)'
	@echo 'make accuracy            compare stacks unwound in the kernel with libdwfl'
	@echo 'make lint | bench [T=PART] | docs | man | compile_commands.json | clean'
	@echo 'make deps [DEPS=test]    only install the packages for building (or testing)'
	@echo 'make install | uninstall PREFIX=$(PREFIX) DESTDIR=$(DESTDIR)'

# --- what every target below stands on -----------------------------------------------------------

# Rewritten only when its text differs: objects depend on it, so changed flags rebuild them.
stamp = mkdir -p $(@D); printf '%s\n' '$(subst ','\'',$(1))' | cmp -s - $@ || \
	printf '%s\n' '$(subst ','\'',$(1))' > $@
$(B)/flags: FORCE
	@$(call stamp,$(CC) $(ALL_CFLAGS) $(ALL_CPPFLAGS))
$(B)/link-flags: FORCE
	@$(call stamp,$(CC) $(ALL_LDFLAGS) $(LIBS) $(lib_obj))
$(B)/workload-flags: FORCE
	@$(call stamp,$(CC) $(CXX) $(WORKLOAD_FLAGS))

# A text file as `static const char NAME[]`, NUL-terminated.
define embed
$(call say,EMBED,$<)
@mkdir -p $(@D)
$(Q){ echo 'static const char $(basename $(notdir $@))[] = {'; \
  od -An -v -td1 $< | sed 's/\([0-9]\)\( \|$$\)/\1,\2/g'; echo '0};'; } > $@
endef
$(scripts): $(B)/gen/%_js.h: src/render/%.js
	$(embed)
$(styles): $(B)/gen/%_css.h: src/render/%.css
	$(embed)

$(tables): $(B)/gen/%.tsv.h: src/gpu/%.tsv src/gpu/tables.awk
	$(call say,TABLE,$<)
	@mkdir -p $(@D)
	$(Q)awk -v table=$* -f src/gpu/tables.awk $< > $@

$(bpf_obj): $(B)/bpf/%.bpf.o: bpf/%.bpf.c
	$(call say,BPF,$<)
	@mkdir -p $(@D)
	$(Q)$(BPF_CLANG) $(BPF_FLAGS) -MMD -MP -c $< -o $@
	$(Q)$(BPF_STRIP) -g $@

$(skeletons): $(B)/gen/%.skel.h: $(B)/bpf/%.bpf.o
	@mkdir -p $(@D)
	$(Q)$(BPFTOOL) gen skeleton $< name $* > $@

$(B)/obj/%.o: src/%.c $(B)/flags | $(scripts) $(styles) $(tables) $(skeletons)
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_CPPFLAGS) -MMD -MP -c $< -o $@

$(B)/libinspect.a: $(lib_obj) $(B)/link-flags
	$(call say,AR,$@)
	@rm -f $@
	$(Q)$(AR) rcs $@ $(lib_obj)

$(B)/inspect: $(main_obj) $(B)/libinspect.a $(B)/link-flags
	$(call say,LINK,$@)
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_LDFLAGS) $(main_obj) $(B)/libinspect.a $(LIBS) -o $@

$(B)/tests/%: tests/unit/%.c $(B)/libinspect.a $(B)/flags
	$(call say,TEST,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_CPPFLAGS) -MMD -MP -MF $@.d -MT $@ $< $(ALL_LDFLAGS) $(B)/libinspect.a \
	  $(LIBS) -lcmocka -o $@

# A workload may add flags, which win over the usual ones: `/* cflags: -O1 -fomit-frame-pointer */`.
own_flags = $(shell sed -n '1,3s|^/\* cflags: \(.*\) \*/$$|\1|p' $<)
$(B)/workloads/%: tests/workloads/%.c $(wildcard tests/workloads/*.h) $(B)/workload-flags
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(WORKLOAD_FLAGS) $< -o $@ -lm $(own_flags)
$(B)/workloads/%: tests/workloads/%.cc $(B)/workload-flags
	$(call say,CXX,$<)
	@mkdir -p $(@D)
	$(Q)$(CXX) $(WORKLOAD_FLAGS) $< -o $@ -lm $(own_flags)
# One file, standard library only: no module and no network.
$(B)/workloads/%: tests/workloads/%.go
	$(call say,GO,$<)
	@mkdir -p $(@D)
	$(Q)GO111MODULE=off GOFLAGS= GOCACHE=$(abspath $(B)/go-cache) $(GO) build -o $@ $<

$(B)/bench/%: tests/bench/%.c $(B)/workload-flags
	$(call say,CC,$<)
	@mkdir -p $(@D)
	$(Q)$(CC) $(WORKLOAD_FLAGS) $< -o $@ -lm $(own_flags)

$(B)/man/%: man/%.scd
	@mkdir -p $(@D)
	$(Q)$(SCDOC) < $< > $@

-include $(lib_obj:.o=.d) $(main_obj:.o=.d) $(unit:=.d) $(bpf_obj:.o=.d)

# --- from nothing --------------------------------------------------------------------------------
# Packages first, then a second make that sees them, whatever -j says.

deps:
	@scripts/deps.sh $(or $(DEPS),build)

demo:
	@scripts/deps.sh build
	@+$(MAKE) --no-print-directory all $(B)/workloads/shares
	@O=$(B) tests/demo.sh

test test-all:
	@scripts/deps.sh build test
	@+$(MAKE) --no-print-directory test-programs $(if $(filter test-all,$@),fuzz-programs)
	@O=$(B) tests/run $(if $(filter test-all,$@),--all) $(T)

# The libraries' headers are the same for all machines; to link, theirs would be needed too.
cross:
	@scripts/deps.sh build cross
	@+$(MAKE) --no-print-directory O=$(O)-arm64 CC=aarch64-linux-gnu-gcc AR=aarch64-linux-gnu-ar \
	  CPPFLAGS='-idirafter /usr/include -idirafter /usr/include/$(multiarch)' $(O)-arm64/libinspect.a
	@for check in frames loops; do O=$(O)-arm64 bash tests/lint/bpf_$$check.sh || exit 1; done

# One unit test needs no more than itself.
test-programs: $(or $(filter $(T:unit/%=$(B)/tests/test_%),$(unit)),all $(unit) $(workloads) $(B)/tables)

lint: all
	@failed=0; for check in tests/lint/*.sh; do O=$(B) bash $$check || failed=1; done; exit $$failed

bench: all $(workloads) $(bench_programs)
	@[ -z "$(T)" ] || [ -e tests/bench/$(T).sh ] || O=$(B) exec bash tests/bench/run.sh --only $(T)
	@for bench in $(wildcard tests/bench/$(or $(T),*).sh); do O=$(B) bash $$bench || exit 1; done

# The outputs and the picture in README.md.
docs: all $(workloads)
	@O=$(B) docs/regenerate.sh

include tests/fuzz/fuzz.mk

$(B)/accuracy $(B)/tables: $(B)/%: tests/accuracy/%.c tests/unit/oracle.h $(B)/libinspect.a $(B)/flags
	$(call say,CC,$<)
	$(Q)$(CC) $(ALL_CFLAGS) $(ALL_CPPFLAGS) $< $(ALL_LDFLAGS) $(B)/libinspect.a $(LIBS) -o $@

accuracy: all $(workloads) $(B)/accuracy
	@O=$(B) bash tests/accuracy/run.sh

# --- the rest ------------------------------------------------------------------------------------

man: $(man)

doc_dir = $(DESTDIR)$(PREFIX)/share/doc/inspect
man_dir = $(DESTDIR)$(PREFIX)/share/man/man1
install: all man
	install -D -m 755 $(B)/inspect $(DESTDIR)$(PREFIX)/bin/inspect
	install -d $(doc_dir) $(man_dir)
	install -m 644 LICENSE $(wildcard README.md) $(doc_dir)
	$(if $(man),install -m 644 $(man) $(man_dir))

uninstall:
	rm -f $(DESTDIR)$(PREFIX)/bin/inspect $(addprefix $(man_dir)/,$(notdir $(man)))
	rm -rf $(doc_dir)

compile_commands.json: $(B)/flags
	@{ sep='['; for src in src/main.c $(lib_src); do \
	  printf '%s\n{"directory": "%s", "file": "%s", "command": "%s"}' "$$sep" '$(CURDIR)' "$$src" \
	    '$(subst ','\'',$(subst ",\",$(CC) $(ALL_CFLAGS) $(ALL_CPPFLAGS))) -c '"$$src"; sep=','; done; printf '\n]\n'; } > $@

clean:
	rm -rf $(B) compile_commands.json
