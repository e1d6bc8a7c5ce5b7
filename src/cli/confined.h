/*
 * Work that may crash, never end or take all memory: it is done in a child process with limits, and
 * hands back a few bytes. Whatever it does, this process goes on.
 */
#ifndef GW_CLI_CONFINED_H
#define GW_CLI_CONFINED_H

#include <stddef.h>
#include <stdint.h>

enum {
    GW_CONFINED_MEMORY_MIB = 1024, /* of address space, beyond what this process has */
    GW_CONFINED_RESULT_MAX = 4096, /* what a pipe takes at once, so that the child never waits */
};

struct gw_confined {
    void (*work)(void *arg, void *result); /* in the child; memory it changes is a copy */
    void *arg;
    void *result;
    size_t result_size;
    uint32_t cpu_ms; /* of processor time */
};

enum gw_confined_end {
    GW_CONFINED_DONE,   /* the result is there */
    GW_CONFINED_SLOW,   /* it took more than its time */
    GW_CONFINED_FAILED, /* it crashed, or got no memory or no process */
};

/* What the work prints on standard error is lost. */
enum gw_confined_end gw_confined_run(const struct gw_confined *confined);

#endif
