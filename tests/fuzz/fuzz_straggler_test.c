/*
 * Fuzz target: the server of calls with a bound, fed with gradients of any workers at any time:
 * late, twice, overlapping, beyond the window, of other epochs, raw, given back; and time passes.
 *
 * Every packet is the sum of just those that it claims, a digit of 16 for each, whoever sends it.
 * So a result tells whose values are in it. Properties: a result has each worker at most once, more
 * than half of them, and as many as it says; it is the same however often it is sent; of each
 * worker's fragments of a call no more than the bound are left out; no packet or buffer is lost;
 * output and expire come to an end.
 */
#include "fuzz/node_time.h"
#include "fuzz/replay.h"
#include "host.h"
#include "support.h"

#include "base/assert.h"
#include "base/cpu.h"
#include "core/aggregation/agg_bound.h"
#include "core/aggregation/agg_key.h"
#include "core/aggregation/server.h"

enum {
    JOB = 3,
    EPOCH = 9,
    SERVER = 1,
    WORLD = 5,
    LIAR = 4, /* it alone says another bound */
    ALL = (1 << WORLD) - 1,
    RACK = 7, /* the first three */
    VALUES = 2,
    WINDOW = 8,
    CALL = 12, /* fragments of each */
    CALLS = 40,
    FIRST = 1000,
    AGGREGATORS = 64,
    PKTS = 128,
    OUTPUTS_MAX = 4096,
    STORAGE = 32768,
    FINAL = 1 << 5, /* of a step's set: it gives a result back */
    RAW = 1 << 6,
    WHOLE = 1 << 7, /* a sum that switches completed */
};

/* How far the runs got; a target that reaches nothing tests nothing. */
static uint64_t total_results, total_lacking, total_overlaps, total_stale, total_answered,
    total_raw, total_invited;

static const struct gw_place workers[WORLD] = {
    {.address = 10, .bitmap = 1},
    {.address = 11, .bitmap = 2},
    {.address = 12, .bitmap = 4},
    {.address = 13, .bitmap = 1, .above = {1}},
    {.address = 14, .bitmap = 2, .above = {1}},
};

struct fuzz {
    struct gw_test_host host;
    struct gw_node *node;
    struct gw_server *server;
    gw_time now;
    uint32_t expected; /* first fragment without a result */
    uint8_t bound;
    uint32_t sets[CALLS * CALL]; /* of the results; 0: there is none */
    uint32_t left_out[CALLS][WORLD];
    struct gw_test_steps steps;
};

static uint8_t take8(struct fuzz *f)
{
    return gw_test_step(&f->steps);
}

static void begin(struct fuzz *f, bool is_fresh)
{
    const struct gw_server_epoch epoch = {.epoch = EPOCH,
                                          .levels = 2,
                                          .first_seq = f->expected,
                                          .places = workers,
                                          .is_fresh = is_fresh};
    gw_server_begin(f->server, &epoch);
}

static void fuzz_open(struct fuzz *f)
{
    static _Alignas(64) unsigned char storage[STORAGE];
    struct gw_endpoint_cfg host = gw_test_host_cfg(SERVER, 4 * VALUES);
    host.apps_max = 1;
    gw_test_host_open(&f->host, &host, PKTS);
    f->node = gw_endpoint_node(f->host.endpoint);
    uint8_t shape = take8(f);
    f->bound = take8(f);
    f->bound = f->bound < GW_AGG_BOUND_ONE ? f->bound : GW_AGG_BOUND_ONE;
    f->now = (gw_time)0 - GW_MS; /* the clock wraps soon */
    f->expected = FIRST;
    struct gw_server_cfg cfg = {.job = JOB,
                                .world = WORLD,
                                .levels = 2,
                                .values = VALUES,
                                .window_max = WINDOW,
                                .aggregators = AGGREGATORS,
                                .raw_max = 2,
                                .retry = GW_US,
                                .quiet = shape & 1 ? 0 : 30 * GW_US,
                                .patience = 10 * GW_US,
                                .patience_max = shape & 2 ? GW_MS : 10 * GW_US,
                                .kernels = gw_kernels_best(gw_cpu_features())};
    GW_ASSERT(gw_server_size(&cfg) <= sizeof(storage));
    GW_ASSERT(gw_server_init(&f->server, storage, &cfg, f->host.endpoint) == 0);
    begin(f, true);
}

static uint32_t sum_of(uint32_t set)
{
    uint32_t sum = 0;
    for (uint32_t rank = 0; rank < WORLD; rank++)
        sum += (set >> rank & 1) << 4 * rank;
    return sum;
}

/* Whose values a sum has; fails if it has any twice, or anything else. */
static uint32_t set_of(uint32_t sum)
{
    uint32_t set = 0;
    for (uint32_t rank = 0; rank < WORLD; rank++)
        set |= (sum >> 4 * rank & 1) << rank;
    GW_ASSERT(sum_of(set) == sum);
    return set;
}

static void check_result(struct fuzz *f, const struct gw_pkt *pkt)
{
    uint32_t at = pkt->seq - FIRST, values[VALUES];
    GW_ASSERT(at < CALLS * CALL && pkt->agg.values == VALUES && pkt->buf != GW_BUF_NONE);
    memcpy(values, gw_buf_bytes(&f->host.bufs, pkt->buf), sizeof(values));
    uint32_t set = set_of(values[0]), count = (uint32_t)__builtin_popcount(set);
    GW_ASSERT(values[0] == values[1]);
    GW_ASSERT(count == WORLD - gw_agg_result_lacks(pkt->agg.bitmap) && 2 * count > WORLD);
    GW_ASSERT(f->sets[at] == 0 || f->sets[at] == set);
    if (f->sets[at])
        return;
    f->sets[at] = set;
    for (uint32_t rank = 0; rank < WORLD; rank++)
        f->left_out[at / CALL][rank] += !(set >> rank & 1);
    for (uint32_t rank = 0; rank < WORLD; rank++)
        GW_ASSERT(f->left_out[at / CALL][rank] <= gw_agg_bound_allows(f->bound, CALL));
    while (f->expected - FIRST < CALLS * CALL && f->sets[f->expected - FIRST])
        f->expected++;
    total_results++;
    total_lacking += set != ALL;
}

static void output(struct fuzz *f)
{
    for (uint32_t i = 0; i < OUTPUTS_MAX; i++) {
        struct gw_pkt *pkt;
        f->node->ready_count = 0;
        if ((gw_node_output(f->node, 0, &pkt, 1, f->now) & ~GW_OUTPUT_MORE) == 0)
            return;
        if (!(pkt->agg_flags & GW_AGG_REQUEST))
            check_result(f, pkt);
        gw_pkt_release(&f->host.pool, pkt);
    }
    GW_ASSERT(!"the server stops talking");
}

/* Says in a packet whose values it carries; those of one rack, of a whole one, or of all. */
static uint32_t claim(struct gw_pkt *pkt, uint8_t choice)
{
    uint32_t set = choice & ALL, below = set & RACK ? set & RACK : set;
    if (choice & WHOLE && !(choice & (RAW | FINAL))) {
        pkt->agg.level = set & 1 ? 2 : 1;
        pkt->agg.bitmap = set & 1 ? 1 : set & 6 ? set >> 1 & 3 : 1;
        return set & 1                ? ALL
               : pkt->agg.bitmap == 3 ? ALL
               : pkt->agg.bitmap == 1 ? RACK
                                      : ALL & ~RACK;
    }
    pkt->agg.above[0] = below > RACK;
    pkt->agg.bitmap = below > RACK ? below >> 3 : below;
    return below;
}

static void input(struct fuzz *f)
{
    struct gw_pkt *pkt = gw_pkt_claim(&f->host.pool);
    uint8_t src = take8(f), choice = take8(f), how = take8(f);
    int8_t offset = (int8_t)take8(f);
    GW_ASSERT(pkt != NULL);
    /* Near what is wanted, or anywhere. */
    uint32_t seq = f->expected + (uint32_t)(how & 1 ? offset : offset & 3);
    if (seq - FIRST >= CALLS * CALL)
        seq = FIRST;
    *pkt = (struct gw_pkt){
        .q = {.kind = GW_PKT_GRAD, .size = 100, .ecn = how >> 1 & 3},
        .src = 10 + src % WORLD,
        .dst = SERVER,
        .flow = JOB,
        .key = gw_agg_key(FIRST + (seq - FIRST) / CALL * CALL, GW_DTYPE_I32, false),
        .epoch = (uint16_t)(EPOCH + (src >= 250)),
        .seq = seq,
        .index = src % AGGREGATORS,
        .buf = gw_buf_claim(&f->host.bufs),
        .scale = GW_PKT_SCALE_NONE,
        .agg_flags = (how & 8 ? GW_AGG_RESEND : 0) | (how & 16 ? GW_AGG_EVEN : GW_AGG_ODD),
        .agg = {.values = VALUES, .bound = f->bound},
    };
    uint32_t set = claim(pkt, choice);
    if (set == 1 << LIAR)
        pkt->agg.bound = GW_AGG_BOUND_ONE;
    if (choice & FINAL) {
        pkt->agg_flags |= GW_AGG_FINAL | GW_AGG_RESEND;
        set = ALL;
    } else if (choice & RAW) {
        pkt->agg_flags |= GW_AGG_RAW | GW_AGG_RESEND;
    }
    uint32_t values[VALUES] = {sum_of(set), sum_of(set)};
    GW_ASSERT(pkt->buf != GW_BUF_NONE);
    memcpy(gw_buf_bytes(&f->host.bufs, pkt->buf), values, sizeof(values));
    gw_node_input(f->node, 0, &pkt, 1, f->now);
}

/* Everybody but some sends what is wanted, and a few more. */
static void send_most(struct fuzz *f)
{
    uint8_t missing = take8(f), span = take8(f) % WINDOW;
    for (uint32_t i = 0; i <= span; i++)
        for (uint32_t rank = 0; rank < WORLD; rank++) {
            const uint8_t step[] = {(uint8_t)rank, (uint8_t)(1u << rank), 9, (uint8_t)i};
            struct gw_test_steps saved = f->steps;
            if (missing >> rank & 1 || f->expected + i - FIRST >= CALLS * CALL)
                continue;
            f->steps = (struct gw_test_steps){step, sizeof(step)};
            input(f);
            f->steps = saved;
            output(f);
        }
}

static void pass_time(struct fuzz *f)
{
    uint8_t step = take8(f);
    gw_test_pass_time(f->node, &f->now, step, (gw_time)step * step * 100 * GW_NS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct fuzz f;
    f = (struct fuzz){.steps = {data, size}};
    fuzz_open(&f);
    while (f.steps.left) {
        uint8_t step = take8(&f);
        if (step % 8 < 3)
            input(&f);
        else if (step % 8 < 5)
            pass_time(&f);
        else if (step % 8 < 7)
            send_most(&f);
        else if (step >= 128)
            begin(&f, false);
        output(&f);
    }
    const struct gw_server_stats *stats = gw_server_stats(f.server);
    total_overlaps += stats->overlaps;
    total_stale += stats->stale;
    total_answered += stats->answered;
    total_raw += stats->overflowed;
    total_invited += stats->invited;
    gw_server_fini(f.server);
    gw_test_host_close(&f.host); /* checks that every packet and buffer is back */
    return 0;
}

enum {
    ROUNDS = 30000,
};

static void check_reached(void)
{
    print_message("results %llu, lacking %llu, overlaps %llu, stale %llu, answered %llu, raw %llu, "
                  "invited %llu\n",
                  (unsigned long long)total_results, (unsigned long long)total_lacking,
                  (unsigned long long)total_overlaps, (unsigned long long)total_stale,
                  (unsigned long long)total_answered, (unsigned long long)total_raw,
                  (unsigned long long)total_invited);
    assert_true(total_results > ROUNDS && total_lacking > ROUNDS / 10);
    assert_true(total_overlaps > ROUNDS / 10 && total_stale > ROUNDS / 10);
    assert_true(total_answered > ROUNDS / 10 && total_raw > ROUNDS / 10);
    assert_true(total_invited > ROUNDS / 100);
}

const struct gw_test_target gw_test_target = {
    .corpus = "straggler",
    .seed = 4,
    .rounds = ROUNDS,
    .check_reached = check_reached,
};
