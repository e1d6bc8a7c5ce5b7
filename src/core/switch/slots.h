/*
 * Aggregation in slots: the stage of a switch that adds up gradient fragments in a pool of slots
 * that is divided between jobs once and for all (SwitchML, NSDI 2021, sections 3.3 to 3.5,
 * algorithms 1 and 3).
 *
 * A job's workers take turns at its slots: fragment f uses slot f modulo the job's slots. A slot
 * has two versions, used alternately, so that a result stays while the next fragment of the slot is
 * added up. Whoever repeats a contribution to a complete sum gets the result again, for itself; the
 * packet that completes a sum turns into the result for all workers. No server takes part, and a
 * gradient packet never leaves the stage.
 *
 * A worker sends the next fragment of a slot only when it has the result of the last one. So when a
 * version is begun anew, all workers have the result that was in it, and nobody is more than one
 * use of the slot ahead. The paper tells uses of a version apart by clearing "seen" bits, which is
 * right as long as packets keep their order; here a version also knows the number of its fragment,
 * so that a packet of an earlier use, however late, is recognised and dropped.
 *
 * Invariant: a sum contains exactly the workers of its bitmap, each once, and only their values for
 * the fragment that the version is in use for.
 *
 * The sum is kept in the payload buffer of the first packet; a buffer that others share is never
 * written. At most two buffers per slot are held, until the job is removed.
 */
#ifndef GW_CORE_SLOTS_H
#define GW_CORE_SLOTS_H

#include "core/pkt.h"
#include "core/quant/kernels.h"

/* A job in one rack: what its switch knows of it. */
struct gw_slots_job {
    uint32_t job;
    uint16_t epoch;
    uint16_t world;          /* workers, 1 to GW_SLOTS_WORLD_MAX; rank r is bit r */
    uint32_t first;          /* slot of the pool that is the job's slot 0 */
    uint32_t count;          /* slots of the job, 1 to GW_SLOTS_MAX */
    const uint32_t *members; /* addresses of the workers, by rank */
};

struct gw_slots_cfg {
    uint32_t slots;    /* of the pool */
    uint32_t jobs_max; /* jobs known at the same time */
    const struct gw_kernels *kernels;
    struct gw_pkt_pool *pool;
};

/* Counters, in packets: every gradient is in one of those below the first. */
struct gw_slots_stats {
    uint64_t gradients;  /* all that came */
    uint64_t held;       /* added and consumed */
    uint64_t completed;  /* became the result for all workers */
    uint64_t repeated;   /* became the result for the worker that sent it again */
    uint64_t duplicates; /* were in the sum already, which is not complete */
    uint64_t stale;      /* of an earlier use of the slot */
    uint64_t foreign;    /* of a job or epoch that is not known here */
    uint64_t malformed;  /* names what does not exist, or disagrees with other workers */
    uint64_t no_buffer;  /* a shared sum could not be copied; to be sent again */
};

struct gw_slots;

/* Bytes of memory that the stage needs. */
size_t gw_slots_size(const struct gw_slots_cfg *cfg);

/* Makes an empty stage in `memory`, aligned to 64. */
struct gw_slots *gw_slots_init(void *memory, const struct gw_slots_cfg *cfg);

/*
 * Installs a job, or replaces it (a new epoch): its slots are empty then. Copies the members.
 * Returns 0; GW_ERR_NO_ROOM (jobs_max are installed); or GW_ERR_INVALID when slots are not in the
 * pool or another job has them. After an error, the job is as it was.
 */
int gw_slots_install(struct gw_slots *slots, const struct gw_slots_job *job);

/* Forgets a job and gives up what its slots hold; an unknown job is no error. */
void gw_slots_remove(struct gw_slots *slots, uint32_t job);

/*
 * Handles a gradient packet with GW_AGG_SLOT. Returns to how many addresses the result goes that
 * the packet has become, and sets *dsts to them, which stay until a job is installed or removed. 0:
 * the packet was consumed.
 */
uint32_t gw_slots_gradient(struct gw_slots *slots, struct gw_pkt *pkt, const uint32_t **dsts);

const struct gw_slots_stats *gw_slots_stats(const struct gw_slots *slots);

#endif
