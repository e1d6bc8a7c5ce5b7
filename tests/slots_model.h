/*
 * Jobs of aggregation in slots, for tests: workers with tensors of random values, the stage, and
 * what must hold. How packets get from one to the other is the test's matter.
 *
 * Memory of a run is taken piece by piece and freed at once.
 */
#ifndef GW_TESTS_SLOTS_MODEL_H
#define GW_TESTS_SLOTS_MODEL_H

#include "core/aggregation/slot_worker.h"
#include "core/switch/slots.h"

enum {
    GW_SLOTS_MODEL_HOSTS = 5,
    GW_SLOTS_MODEL_JOBS_MAX = 3,
    GW_SLOTS_MODEL_SLOTS_MAX = 6,
    GW_SLOTS_MODEL_TENSORS = 3,
    GW_SLOTS_MODEL_VALUES = 16, /* per fragment */
    GW_SLOTS_MODEL_PKTS = 2048, /* per pool, and as many buffers */
};

#define GW_SLOTS_MODEL_TIMEOUT (200 * GW_US)

struct gw_slots_model {
    uint64_t seed;
    uint32_t number;
    uint32_t world;
    uint32_t first_slot;
    uint32_t slots;
    uint32_t first_seq;
    uint32_t counts[GW_SLOTS_MODEL_TENSORS];
    enum gw_dtype type;
    bool average;
    bool overflows; /* sums of tensor 1 do not fit */
    gw_time stall;
    uint8_t units; /* with which its bursts are announced; 0: they are not */
    uint32_t members[GW_SLOTS_MODEL_HOSTS];
    struct gw_endpoint *endpoints[GW_SLOTS_MODEL_HOSTS]; /* by rank */
    struct gw_slot_worker *workers[GW_SLOTS_MODEL_HOSTS];
    unsigned char *in[GW_SLOTS_MODEL_HOSTS];  /* all tensors one after the other */
    unsigned char *out[GW_SLOTS_MODEL_HOSTS]; /* likewise */
    uint32_t ended[GW_SLOTS_MODEL_HOSTS];     /* tensors, failed ones included */
    uint32_t failed[GW_SLOTS_MODEL_HOSTS];
};

void *gw_slots_model_take(size_t size);
void gw_slots_model_free_all(void);

/* Job `number` of a seed: world, slots, type and tensors as they come; no overflow, no stall. */
struct gw_slots_model gw_slots_model_draw(uint64_t seed, uint32_t number);

/* Makes the workers; their endpoints are set. */
void gw_slots_model_open(struct gw_slots_model *job);
void gw_slots_model_install(const struct gw_slots_model *job, struct gw_slots *slots);

/* Lets a worker reduce all tensors. */
void gw_slots_model_reduce(struct gw_slots_model *job, uint32_t rank, gw_time now);

/* Takes note of an event; checks that tensors end in order, and if the job cannot stall, how. */
void gw_slots_model_event(struct gw_slots_model *job, uint32_t rank, const struct gw_event *event);
bool gw_slots_model_has_ended(const struct gw_slots_model *job);

/* Never is a worker more than one use of a slot ahead of another. */
void gw_slots_model_check_turns(const struct gw_slots_model *job);

/* Compares every replica with a sum in wide integers; an overflowing tensor has none. */
void gw_slots_model_check_sums(const struct gw_slots_model *job);

/* A stage with room for all jobs. */
struct gw_slots *gw_slots_model_open_stage(struct gw_pkt_pool *pool);
struct gw_endpoint_cfg gw_slots_model_endpoint_cfg(uint32_t address);
void gw_slots_model_add_stats(struct gw_slots_stats *sum, const struct gw_slots_stats *stats);

#endif
