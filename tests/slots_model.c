/* Jobs of aggregation in slots, for tests; see slots_model.h. */
#include "slots_model.h"

#include "host.h"
#include "support.h"

#include "base/cpu.h"
#include "base/prng.h"

enum {
    POOL = GW_SLOTS_MODEL_JOBS_MAX * GW_SLOTS_MODEL_SLOTS_MAX,
    COUNT_MAX = 512, /* elements of a tensor */
    HDR = 44,
    OWNED_MAX = 64,
};

static void *owned[OWNED_MAX]; /* of the present run */
static uint32_t owned_count;

void *gw_slots_model_take(size_t size)
{
    void *memory = gw_test_take(size);
    assert_in_range(owned_count, 0, OWNED_MAX - 1);
    owned[owned_count++] = memory;
    return memset(memory, 0, size);
}

void gw_slots_model_free_all(void)
{
    while (owned_count)
        free(owned[--owned_count]);
}

static size_t bytes_before(const struct gw_slots_model *job, uint32_t tensor)
{
    size_t count = 0;
    for (uint32_t i = 0; i < tensor; i++)
        count += job->counts[i];
    return count * gw_dtype_size(job->type);
}

/* Bits of an element: numbers that add up to less than 2^31 units, unless they shall not. */
static uint32_t element(const struct gw_slots_model *job, uint32_t rank, uint32_t tensor,
                        uint32_t index)
{
    struct gw_prng prng = gw_prng_derive(
        job->seed, (uint64_t)job->number << 56 | (uint64_t)rank << 48 | tensor << 24 | index);
    uint32_t random = (uint32_t)gw_prng_next(&prng);
    bool is_large = job->overflows && tensor == 1 && index == 5;
    /* What does not fit is one worker's value, or only the sum. */
    bool is_unfit = is_large && rank == 0 && (job->seed % 2 || job->world == 1);
    if (job->type == GW_DTYPE_I32)
        return is_large ? INT32_MAX - !is_unfit : (uint32_t)((int32_t)random / 64);
    if (job->type == GW_DTYPE_F16) /* infinity, 15, or exponents up to 12: below 0.25 */
        return is_unfit   ? 0x7c00
               : is_large ? 0x4b80
                          : (random & 0x83ff) | (random >> 16) % 13 << 10;
    float x = is_unfit ? 1e20f : is_large ? 15.0f : (float)(int32_t)random / 8589934592.0f;
    uint32_t bits;
    memcpy(&bits, &x, sizeof(bits));
    if (job->type == GW_DTYPE_BF16)
        return bits >> 16;
    return bits;
}

struct gw_slots_model gw_slots_model_draw(uint64_t seed, uint32_t number)
{
    struct gw_prng prng = gw_prng_derive(seed, number);
    struct gw_slots_model job = {
        .seed = seed,
        .number = number,
        .world = 1 + gw_prng_below(&prng, GW_SLOTS_MODEL_HOSTS),
        .first_slot = number * GW_SLOTS_MODEL_SLOTS_MAX,
        .slots = 1 + gw_prng_below(&prng, GW_SLOTS_MODEL_SLOTS_MAX),
        .first_seq = UINT32_MAX - gw_prng_below(&prng, 60), /* wraps soon */
        .type = (enum gw_dtype)gw_prng_below(&prng, GW_DTYPE_SUMMABLE),
        .average = gw_prng_below(&prng, 2),
    };
    for (uint32_t i = 0; i < GW_SLOTS_MODEL_TENSORS; i++)
        job.counts[i] = 1 + gw_prng_below(&prng, i == 1 ? 400 : 90);
    for (uint32_t rank = 0; rank < job.world; rank++)
        job.members[rank] = (number + rank) % GW_SLOTS_MODEL_HOSTS;
    return job;
}

void gw_slots_model_open(struct gw_slots_model *job)
{
    for (uint32_t rank = 0; rank < job->world; rank++) {
        struct gw_slot_worker_cfg cfg = {.job = job->number,
                                         .rank = (uint16_t)rank,
                                         .world = (uint16_t)job->world,
                                         .peer = job->members[0],
                                         .slots = job->slots,
                                         .values = GW_SLOTS_MODEL_VALUES,
                                         .tensors_max = GW_SLOTS_MODEL_TENSORS,
                                         .timeout = GW_SLOTS_MODEL_TIMEOUT,
                                         .stall = job->stall,
                                         .scale_exponent = GW_SCALE_EXPONENT,
                                         .first_seq = job->first_seq,
                                         .notice = {.job = job->number, .units = job->units},
                                         .kernels = gw_kernels_best(gw_cpu_features())};
        assert_int_equal(gw_slot_worker_init(&job->workers[rank],
                                             gw_slots_model_take(gw_slot_worker_size(&cfg)), &cfg,
                                             job->endpoints[rank]),
                         0);
    }
}

void gw_slots_model_install(const struct gw_slots_model *job, struct gw_slots *slots)
{
    struct gw_slots_job entry = {.job = job->number,
                                 .world = (uint16_t)job->world,
                                 .first = job->first_slot,
                                 .count = job->slots,
                                 .members = job->members};
    assert_int_equal(gw_slots_install(slots, &entry), 0);
}

void gw_slots_model_reduce(struct gw_slots_model *job, uint32_t rank, gw_time now)
{
    uint32_t size = gw_dtype_size(job->type);
    job->in[rank] = gw_slots_model_take(bytes_before(job, GW_SLOTS_MODEL_TENSORS));
    job->out[rank] = gw_slots_model_take(bytes_before(job, GW_SLOTS_MODEL_TENSORS));
    for (uint32_t t = 0; t < GW_SLOTS_MODEL_TENSORS; t++) {
        unsigned char *in = job->in[rank] + bytes_before(job, t);
        for (uint32_t i = 0; i < job->counts[t]; i++) {
            uint32_t bits = element(job, rank, t, i);
            memcpy(in + (size_t)i * size, &bits, size);
        }
        struct gw_tensor tensor = {.in = in,
                                   .out = job->out[rank] + bytes_before(job, t),
                                   .count = job->counts[t],
                                   .type = job->type,
                                   .op = job->average ? GW_OP_AVERAGE : GW_OP_SUM,
                                   .tag = t};
        assert_int_equal(gw_slot_worker_reduce(job->workers[rank], &tensor, now), 0);
    }
}

void gw_slots_model_event(struct gw_slots_model *job, uint32_t rank, const struct gw_event *event)
{
    assert_int_equal(event->tag, job->ended[rank]);
    job->ended[rank]++;
    bool is_spoilt = job->overflows && event->tag == 1;
    job->failed[rank] += event->kind == GW_EVENT_FAILED;
    if (!job->stall)
        assert_int_equal(event->kind, is_spoilt ? GW_EVENT_FAILED : GW_EVENT_REDUCED);
}

bool gw_slots_model_has_ended(const struct gw_slots_model *job)
{
    uint32_t ended = 0;
    for (uint32_t rank = 0; rank < job->world; rank++)
        ended += job->ended[rank] == GW_SLOTS_MODEL_TENSORS;
    return ended == job->world;
}

/* Never is a worker more than one use of a slot ahead of another. */
void gw_slots_model_check_turns(const struct gw_slots_model *job)
{
    for (uint32_t slot = 0; slot < job->slots; slot++) {
        uint32_t least = UINT32_MAX, most = 0;
        for (uint32_t rank = 0; rank < job->world; rank++) {
            uint32_t fragment = gw_slot_worker_seq(job->workers[rank], slot) - job->first_seq;
            assert_int_equal(fragment % job->slots, slot);
            least = fragment < least ? fragment : least;
            most = fragment > most ? fragment : most;
        }
        assert_in_range(most - least, 0, job->slots);
    }
}

/* Compares every replica with a sum in wide integers; an overflowing tensor has none. */
void gw_slots_model_check_sums(const struct gw_slots_model *job)
{
    const struct gw_kernels *kernels = gw_kernels_best(0);
    uint32_t shares = job->average ? job->world : 1;
    const struct gw_scale scale = job->type == GW_DTYPE_I32
                                      ? gw_scale_integer(1, shares)
                                      : gw_scale_power(GW_SCALE_EXPONENT, shares);
    for (uint32_t t = 0; t < GW_SLOTS_MODEL_TENSORS; t++) {
        size_t at = bytes_before(job, t), size = bytes_before(job, t + 1) - at;
        int32_t wire[COUNT_MAX];
        int64_t sum[COUNT_MAX] = {0};
        unsigned char expected[4 * COUNT_MAX];
        if (job->overflows && t == 1)
            continue;
        for (uint32_t rank = 0; rank < job->world; rank++) {
            const unsigned char *in = job->in[rank] + at;
            assert_true(kernels->quantise[job->type](wire, in, job->counts[t], &scale));
            kernels->add_wide(sum, wire, job->counts[t]);
        }
        assert_true(kernels->narrow(wire, sum, job->counts[t]));
        kernels->dequantise[job->type](expected, wire, job->counts[t], &scale);
        for (uint32_t rank = 0; rank < job->world; rank++)
            if (memcmp(job->out[rank] + at, expected, size) != 0)
                fail_msg("seed %llu: job %u, rank %u, tensor %u is wrong",
                         (unsigned long long)job->seed, job->number, rank, t);
    }
}

struct gw_slots *gw_slots_model_open_stage(struct gw_pkt_pool *pool)
{
    struct gw_slots_cfg cfg = {.slots = POOL,
                               .jobs_max = GW_SLOTS_MODEL_JOBS_MAX,
                               .kernels = gw_kernels_best(gw_cpu_features()),
                               .pool = pool};
    return gw_slots_init(gw_slots_model_take(gw_slots_size(&cfg)), &cfg);
}

struct gw_endpoint_cfg gw_slots_model_endpoint_cfg(uint32_t address)
{
    struct gw_endpoint_cfg cfg = gw_test_host_cfg(address, 4 * GW_SLOTS_MODEL_VALUES);
    cfg.hdr = HDR;
    cfg.apps_max = GW_SLOTS_MODEL_JOBS_MAX;
    cfg.announcers_max = GW_SLOTS_MODEL_JOBS_MAX;
    cfg.app_events_max = GW_SLOTS_MODEL_JOBS_MAX * GW_SLOTS_MODEL_TENSORS;
    return cfg;
}

void gw_slots_model_add_stats(struct gw_slots_stats *sum, const struct gw_slots_stats *stats)
{
    for (size_t i = 0; i < sizeof(*sum) / sizeof(uint64_t); i++)
        ((uint64_t *)sum)[i] += ((const uint64_t *)stats)[i];
}
