/* A plugin of QEMU that counts instructions, loads and stores: by function, and by what was marked last.
 *
 * counts=FILE: where the figures go at the end, a line each: "f|m INDEX INSTRUCTIONS LOADS STORES".
 * map=FILE: a line for each function, "f ADDRESS INDEX", ascending, and for each mark, "m ADDRESS INDEX": a mark is
 * a function, and what runs after it was entered belongs to it until the next one is. memory=1: loads and stores too.
 *
 * QEMU's header is not needed, and often not there: these are the few declarations, of its plugin interface. */
#include <inttypes.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define EXPORT __attribute__((visibility("default")))

typedef uint64_t qemu_plugin_id_t;
typedef struct qemu_info_t qemu_info_t;
struct qemu_plugin_tb;
struct qemu_plugin_insn;
enum { NO_REGISTERS = 0, READ_AND_WRITE = 3 };

void qemu_plugin_register_vcpu_tb_trans_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, struct qemu_plugin_tb *));
void qemu_plugin_register_vcpu_tb_exec_cb(struct qemu_plugin_tb *, void (*)(unsigned, void *), int, void *);
void qemu_plugin_register_vcpu_mem_cb(struct qemu_plugin_insn *, void (*)(unsigned, uint32_t, uint64_t, void *), int,
                                      int, void *);
void qemu_plugin_register_atexit_cb(qemu_plugin_id_t, void (*)(qemu_plugin_id_t, void *), void *);
size_t qemu_plugin_tb_n_insns(const struct qemu_plugin_tb *);
uint64_t qemu_plugin_tb_vaddr(const struct qemu_plugin_tb *);
struct qemu_plugin_insn *qemu_plugin_tb_get_insn(const struct qemu_plugin_tb *, size_t);
bool qemu_plugin_mem_is_store(uint32_t);

EXPORT int qemu_plugin_version = PLUGIN_VERSION;

struct counts { uint64_t instructions, loads, stores; };
struct place { uint64_t address; size_t index; };
struct block { struct counts *function; size_t instructions, mark; };

enum { MOST = 1 << 16 };
static struct place functions[MOST], marks[MOST];
static struct counts by_function[MOST], by_mark[MOST];
static size_t function_count, mark_count, current; /* mark 0: before the first one */
static const char *counts_file;
static bool memory;

static void ran(unsigned core, void *data) {
    const struct block *block = data;
    (void)core;
    if (block->mark) current = block->mark;
    block->function->instructions += block->instructions;
    by_mark[current].instructions += block->instructions;
}

static void accessed(unsigned core, uint32_t info, uint64_t address, void *data) {
    struct counts *function = ((const struct block *)data)->function, *mark = &by_mark[current];
    (void)core, (void)address;
    if (qemu_plugin_mem_is_store(info)) function->stores++, mark->stores++;
    else function->loads++, mark->loads++;
}

static const struct place *at_or_before(uint64_t address) {
    size_t low = 0, high = function_count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        if (functions[middle].address <= address) low = middle + 1;
        else high = middle;
    }
    return low ? &functions[low - 1] : NULL;
}

static void translated(qemu_plugin_id_t id, struct qemu_plugin_tb *tb) {
    struct block *block = malloc(sizeof *block);
    if (!block) abort();
    const uint64_t address = qemu_plugin_tb_vaddr(tb) & ~UINT64_C(1);
    const struct place *function = at_or_before(address);
    *block = (struct block){&by_function[function ? function->index : 0], qemu_plugin_tb_n_insns(tb), 0};
    for (size_t i = 0; i < mark_count; i++)
        if (marks[i].address == address) block->mark = marks[i].index;
    qemu_plugin_register_vcpu_tb_exec_cb(tb, ran, NO_REGISTERS, block);
    for (size_t i = 0; memory && i < block->instructions; i++)
        qemu_plugin_register_vcpu_mem_cb(qemu_plugin_tb_get_insn(tb, i), accessed, NO_REGISTERS, READ_AND_WRITE, block);
    (void)id;
}

static void ended(qemu_plugin_id_t id, void *data) {
    FILE *file = fopen(counts_file, "w");
    (void)id, (void)data;
    if (!file) return;
    for (size_t i = 0; i < MOST; i++) {
        const struct counts *f = &by_function[i], *m = &by_mark[i];
        if (f->instructions)
            fprintf(file, "f %zu %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", i, f->instructions, f->loads, f->stores);
        if (m->instructions)
            fprintf(file, "m %zu %" PRIu64 " %" PRIu64 " %" PRIu64 "\n", i, m->instructions, m->loads, m->stores);
    }
    fclose(file);
}

static bool read_map(const char *path) {
    FILE *file = fopen(path, "r");
    char kind;
    uint64_t address;
    size_t index;
    if (!file) return false;
    while (fscanf(file, " %c %" SCNx64 " %zu", &kind, &address, &index) == 3) {
        size_t *count = kind == 'f' ? &function_count : &mark_count;
        if (*count == MOST || index >= MOST) return fclose(file), false;
        (kind == 'f' ? functions : marks)[(*count)++] = (struct place){address, index};
    }
    return fclose(file), true;
}

EXPORT int qemu_plugin_install(qemu_plugin_id_t id, const qemu_info_t *info, int argc, char **argv) {
    (void)info;
    for (int i = 0; i < argc; i++) {
        if (!strncmp(argv[i], "counts=", 7)) counts_file = argv[i] + 7;
        else if (!strncmp(argv[i], "map=", 4)) {
            if (!read_map(argv[i] + 4)) return -1;
        } else if (!strncmp(argv[i], "memory=", 7)) memory = argv[i][7] == '1' || argv[i][7] == 'o';
        else return -1;
    }
    if (!counts_file) return -1;
    qemu_plugin_register_vcpu_tb_trans_cb(id, translated);
    qemu_plugin_register_atexit_cb(id, ended, NULL);
    return 0;
}
