# presk: `make` builds build/presk; `make demo` and `make test` are where to start. `make help`
# lists every target.
CC      ?= gcc
BUILD   ?= build
WARN    := -Wall -Wextra -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Wpointer-arith
# Bits are promised: no contraction, no fast-math flag, anywhere.
EXACT   := -ffp-contract=off -fno-fast-math
CFLAGS  ?= -O2 -g
override CFLAGS += -std=c11 -D_GNU_SOURCE $(WARN) $(EXACT) -fPIC -pthread -Isrc -MMD -MP $(EXTRA)
LIBS    := -ljansson -lunistring -lgmp -lz -ldl -lm -pthread
# The program takes these as archives where there are any: their loading is half the time to start.
ARCHIVED = $(foreach lib,jansson unistring gmp z,$(or $(filter /%,$(shell \
             $(CC) -print-file-name=lib$(lib).a)),-l$(lib))) -ldl -lm -pthread
LLVM_CONFIG ?= llvm-config-19

EMITTER := $(wildcard src/native/llvm_*.c)
SOURCES := $(filter-out $(EMITTER) src/cli/main.c, $(wildcard src/*/*.c src/*.c))
OBJECTS := $(SOURCES:%.c=$(BUILD)/%.o) $(BUILD)/std.o
UNIT    := $(wildcard tests/unit/*.c)
UNITS   := $(UNIT:tests/unit/%.c=$(BUILD)/unit/%)
SUPPORT := $(patsubst %.c,$(BUILD)/%.o,$(wildcard tests/support/*.c))

.PHONY: all deps demo test unit asan fuzz bench bench-products bench-maths format format-check deps-check realize sched \
        plan-check exact peers clean help install uninstall
.DEFAULT_GOAL := all
.DELETE_ON_ERROR:

all: $(BUILD)/presk $(BUILD)/libpresk.so $(BUILD)/libpresk_llvm.so ## build everything

# Objects need the libraries' headers: what is missing is installed first, once.
$(BUILD)/deps.ok: scripts/deps.sh
	@mkdir -p $(@D)
	@sh scripts/deps.sh
	@touch $@
deps: ## install what is missing (Debian packages)
	@mkdir -p $(BUILD)
	@sh scripts/deps.sh
	@touch $(BUILD)/deps.ok

$(BUILD)/%.o: %.c | $(BUILD)/deps.ok
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -c $< -o $@

# The modules of std/ travel inside the binary.
$(BUILD)/std.c: $(wildcard std/*.psk) scripts/embed.sh
	@mkdir -p $(@D)
	@sh scripts/embed.sh std/*.psk > $@
$(BUILD)/std.o: $(BUILD)/std.c | $(BUILD)/deps.ok
	$(CC) $(CFLAGS) -c $< -o $@

# What the emitter is made of: part of the cache's keys, and checked when the emitter is opened.
EMIT_SOURCES := $(EMITTER) src/native/llvm.h src/native/emit.h src/kernel/kernel.h src/kernel/kop.def \
                src/base/number.h
EMIT_BUILD = -DPRESK_EMIT_BUILD='"$(shell cat $(EMIT_SOURCES) | cksum | tr ' ' -) LLVM $(shell $(LLVM_CONFIG) --version)"'
$(BUILD)/src/native/native.o $(BUILD)/src/native/library.o: override CFLAGS += $(EMIT_BUILD)
$(BUILD)/src/native/native.o $(BUILD)/src/native/library.o: $(EMIT_SOURCES)

$(BUILD)/libpresk.a: $(OBJECTS)
	@rm -f $@
	@ar rcs $@ $^
$(BUILD)/libpresk.so: $(OBJECTS)
	$(CC) $(CFLAGS) -shared $^ -o $@ $(LIBS)
$(BUILD)/presk: $(BUILD)/src/cli/main.o $(BUILD)/libpresk.a
	$(CC) $(CFLAGS) $^ -o $@ $(ARCHIVED)
# The only object that sees LLVM; opened on demand, from beside the program.
$(BUILD)/libpresk_llvm.so: $(EMITTER) $(wildcard src/native/*.h src/kernel/*.h src/kernel/*.def) | $(BUILD)/deps.ok
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(EMIT_BUILD) $$($(LLVM_CONFIG) --cflags | sed 's/-I/-isystem /') -std=c11 -fno-exceptions -fvisibility=hidden -shared $(EMITTER) -o $@ $$($(LLVM_CONFIG) --ldflags) -lLLVM-19

# What several unit tests share.
$(SUPPORT): override CFLAGS += -Itests
$(BUILD)/libsupport.a: $(SUPPORT)
	@rm -f $@
	@ar rcs $@ $^
$(BUILD)/unit/%: tests/unit/%.c $(BUILD)/libsupport.a $(BUILD)/libpresk.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -Itests $< $(BUILD)/libsupport.a $(BUILD)/libpresk.a -o $@ -lcmocka -lmpfr $(LIBS)
$(UNITS): | $(BUILD)/libpresk_llvm.so
unit: $(UNITS) ## build the unit tests

$(BUILD)/bench/%: bench/%.c $(BUILD)/libpresk.a
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) -Itests $< $(BUILD)/libpresk.a -o $@ -lmpfr $(LIBS)
bench: all $(BUILD)/bench/launch $(BUILD)/bench/elementwise $(BUILD)/bench/optimizer ## the promised speed, measured (status 3: missed)
	@status=0; for b in "python3 bench/start.py $(BUILD)" $(BUILD)/bench/launch $(BUILD)/bench/elementwise \
	  $(BUILD)/bench/optimizer; do \
	  $$b || status=$$?; echo; done; exit $$status
# The libraries that products are raced against; only this target needs them.
PEER_PACKAGES := libopenblas0-pthread libblis4-openmp libdnnl-dev libxsmm-dev
$(BUILD)/bench/products: bench/products.c bench/products_peers.c $(BUILD)/libpresk.a
	@sh scripts/deps.sh $(PEER_PACKAGES)
	@mkdir -p $(@D)
	$(CC) $(CFLAGS) $(filter %.c,$^) $(BUILD)/libpresk.a -o $@ -fopenmp -ldnnl -lxsmm -lxsmmnoblas $(LIBS)
bench-products: all $(BUILD)/bench/products $(BUILD)/bench/rows ## planned products against four libraries (installs them), and row sums
	@status=0; for b in "python3 bench/products.py $(BUILD)" $(BUILD)/bench/rows; do \
	  $$b || status=$$?; echo; done; exit $$status
bench-maths: $(BUILD)/bench/maths ## the errors of the elementwise functions (hours; STRIDE=37 samples)
	@nice $< $(or $(STRIDE),1)

test: ## run all tests; the last line says how many passed
	@$(MAKE) --no-print-directory -j$$(nproc) all unit
	@python3 tests/run.py --build $(BUILD)

bless: all ## accept the current output of every golden test
	@python3 tests/run.py --build $(BUILD) --bless

asan: ## all tests under the address and undefined-behaviour sanitizers
	@$(MAKE) --no-print-directory BUILD=build/asan CFLAGS="-O1 -g" \
	  EXTRA="-fsanitize=address,undefined -fno-sanitize-recover=undefined -fno-omit-frame-pointer -DPRESK_MALLOC_ARENAS" test

GPT     := corpus/nlp/05_gpt.psk
# Its plan for this machine's vectors.
PLAN    := $(GPT:.psk=.$(if $(shell grep -m 1 -o avx512f /proc/cpuinfo),512,256).json)
SMALL   := --const D=64 --const H=2 --const L=2
TEXT    ?= /usr/share/common-licenses/GPL-3

demo: ## the course GPT's forward pass and loss on real text, natively
	@$(MAKE) --no-print-directory -j$$(nproc) all
	@$(BUILD)/presk data text $(TEXT) --vocab 92 -o out/text.psk.d
	@$(BUILD)/presk run $(GPT) --entry loss --batch 0 --seed 0
	@echo
	@echo "the same in the layouts of a plan:"
	@$(BUILD)/presk run $(GPT) --entry loss --batch 0 --seed 0 --plan @$(PLAN) --retarget | \
	  grep -E '^  (plan|time)|^loss'
	@echo
	@echo "next: presk check, run, train, bench and dump have --help; docs/tour.md follows one program"
	@echo "through every stage; make realize shows the fusion groups of this model."

realize sched: all ## the fusion partition of the corpus GPT (sched is its old name)
	@$(BUILD)/presk dump $(GPT) --stage realize $(SMALL)

$(BUILD)/exact: tests/exact.c $(BUILD)/libsupport.a $(BUILD)/libpresk.a
	$(CC) $(CFLAGS) -Itests $< $(BUILD)/libsupport.a $(BUILD)/libpresk.a -o $@ $(LIBS)
exact: all $(BUILD)/exact ## every layout of many nests against the scalar kernel (MINUTES=28, NATIVE=3: one in 3 natively)
	@$(BUILD)/exact $(or $(MINUTES),28) $(or $(NATIVE),3) $(BUILD)/exact.tsv

plan-check: all ## stating a default changes no kernel, byte for byte
	@scripts/plan-check.sh $(BUILD)/presk

peers: all ## check and race against PyTorch (installs python3-torch)
	@sh scripts/deps.sh python3-torch
	@/usr/bin/python3 bench/peers.py

# The front end under clang's libFuzzer for FUZZ_SECONDS; what it finds lies in build/fuzz.
FUZZ_SECONDS ?= 60
FUZZ_DIR     := build/fuzz
FUZZ_SOURCES := tests/fuzz/front_fuzz.c $(BUILD)/std.c \
                $(wildcard $(addsuffix /*.c,$(addprefix src/,base syntax check core maths)))
FUZZ_OBJECTS := $(FUZZ_SOURCES:%.c=$(FUZZ_DIR)/%.o)
FUZZ_FLAGS   := -O1 -g -fsanitize=fuzzer,address,undefined -fno-sanitize-recover=undefined

$(FUZZ_DIR)/%.o: %.c
	@mkdir -p $(@D)
	clang-19 $(CFLAGS) $(FUZZ_FLAGS) -c $< -o $@
$(FUZZ_DIR)/front_fuzz: $(FUZZ_OBJECTS)
	clang-19 $(FUZZ_FLAGS) $^ -o $@ $(LIBS)
fuzz: ## fuzz the front end (FUZZ_SECONDS=60; needs clang 19)
	@sh scripts/deps.sh clang-19 libclang-rt-19-dev
	@$(MAKE) --no-print-directory $(FUZZ_DIR)/front_fuzz
	@mkdir -p $(FUZZ_DIR)/found $(FUZZ_DIR)/seeds
	@n=0; for f in $$(find tests/golden tests/error std corpus -name '*.psk' 2>/dev/null); do \
	  n=$$((n + 1)); cp $$f $(FUZZ_DIR)/seeds/$$n.psk; done
	@python3 tests/fuzz/words.py src/syntax/token.def > $(FUZZ_DIR)/words
	$(FUZZ_DIR)/front_fuzz -dict=$(FUZZ_DIR)/words -max_len=2048 -verbosity=0 -timeout=10 -rss_limit_mb=2048 \
	  -max_total_time=$(FUZZ_SECONDS) -print_final_stats=1 -artifact_prefix=$(FUZZ_DIR)/ \
	  $(FUZZ_DIR)/found $(FUZZ_DIR)/seeds

format: ## apply .clang-format
	@clang-format -i $$(git ls-files 'src/*.c' 'src/*.h' 'tests/*.c' 'tests/*.h' 'bench/*.c')
format-check:
	@clang-format --dry-run --Werror $$(git ls-files 'src/*.c' 'src/*.h' 'tests/*.c' 'tests/*.h' 'bench/*.c')

deps-check: ## the include order of the stages is acyclic and as documented
	@sh scripts/include-order.sh

# The compiler of kernels is looked for in ../lib beside the program's folder.
PREFIX  ?= /usr/local
DESTDIR ?=
WHERE   := $(DESTDIR)$(PREFIX)
install: all ## install into PREFIX (default /usr/local)
	@install -d $(WHERE)/bin $(WHERE)/lib $(WHERE)/include $(WHERE)/share/man/man1 \
	  $(WHERE)/share/bash-completion/completions $(WHERE)/share/zsh/site-functions \
	  $(WHERE)/share/fish/vendor_completions.d
	@install -s $(BUILD)/presk $(WHERE)/bin
	@install -m 644 $(BUILD)/libpresk.so $(BUILD)/libpresk_llvm.so $(BUILD)/libpresk.a $(WHERE)/lib
	@install -m 644 include/presk.h $(WHERE)/include
	@$(BUILD)/presk man >$(WHERE)/share/man/man1/presk.1
	@$(BUILD)/presk completion bash >$(WHERE)/share/bash-completion/completions/presk
	@$(BUILD)/presk completion zsh >$(WHERE)/share/zsh/site-functions/_presk
	@$(BUILD)/presk completion fish >$(WHERE)/share/fish/vendor_completions.d/presk.fish
	@echo "installed presk in $(WHERE)"
uninstall: ## remove what `make install` put into PREFIX
	@rm -f $(WHERE)/bin/presk $(addprefix $(WHERE)/lib/,libpresk.so libpresk_llvm.so libpresk.a) \
	  $(WHERE)/include/presk.h $(WHERE)/share/man/man1/presk.1 \
	  $(WHERE)/share/bash-completion/completions/presk $(WHERE)/share/zsh/site-functions/_presk \
	  $(WHERE)/share/fish/vendor_completions.d/presk.fish

clean: ## remove what was built
	@rm -rf build

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*##/\t/' | sort | column -t -s "$$(printf '\t')"

-include $(shell find $(BUILD) -name '*.d' 2>/dev/null)
