/*
 * Fuzz target: a worker's membership of a job and the worker behind it, to which a server and
 * strangers say anything at any time: well-formed packets of job control and results, of which any
 * number may be impossible.
 *
 * The input is a program of small steps. Properties: no crash, no assertion; whatever is taken, a
 * worker can be made of it, within what it was made for; strangers change nothing; a call ends at
 * most once; no packet or buffer is lost; output and expire come to an end.
 */
#include "fuzz/posted.h"
#include "fuzz/node_time.h"
#include "fuzz/replay.h"
#include "host.h"
#include "support.h"

#include "base/assert.h"
#include "base/cpu.h"
#include "base/error.h"
#include "core/aggregation/agg_bound.h"
#include "core/control/member.h"

enum {
    JOB = 3,
    OWN = 1,
    SERVER = 9,
    STRANGER = 10,
    RANK = 1,
    WORLD = 3,
    VALUES = 4, /* room for them in a packet */
    WINDOW = 8,
    CALL = 20, /* elements */
    CALLS_MAX = 2,
    PKTS = 96,
    MEMORY_MAX = 1 << 15,
    OUTPUTS_MAX = 1000,
    KEYS = 32,
};

#define INCARNATION UINT32_C(40)

/* How far the runs got; a target that reaches nothing tests nothing. */
static uint64_t total_in, total_again, total_refused, total_limits, total_left, total_reduced,
    total_failed, total_results, total_stale, total_ignored;

struct fuzz {
    struct gw_test_host host;
    struct gw_node *node;
    struct gw_member *member;
    struct gw_worker *worker; /* NULL: none yet */
    void *memory[2];
    struct gw_test_steps steps;
    uint32_t incarnation; /* of the life it is in */
    uint16_t epoch;       /* as its packets say */
    uint32_t calls;       /* in work */
    uint32_t keys[KEYS];  /* of the fragments that it sent, by number */
    bool is_member_due;   /* an event of it is */
    float in[CALLS_MAX][CALL], out[CALLS_MAX][CALL];
    gw_time now;
};

static uint8_t take8(struct fuzz *f)
{
    return gw_test_step(&f->steps);
}

/* The worker, from the terms as they were taken. */
static void make_worker(struct fuzz *f)
{
    struct gw_worker_cfg cfg = {
        .tensors_max = CALLS_MAX,
        .timeout = 10 * GW_US,
        .stall = GW_MS,
        .congestion_control = true,
        .keeps_results = true,
        .takes_bounds = true,
        .offers_exponents = true,
        .kernels = gw_kernels_best(gw_cpu_features()),
    };
    gw_member_worker_cfg(f->member, &cfg);
    cfg.window_initial = cfg.window_max;
    GW_ASSERT(cfg.values >= 1 && cfg.values <= VALUES && cfg.window_max <= WINDOW);
    GW_ASSERT(cfg.world == WORLD && gw_member_rank(f->member) == RANK && cfg.epoch != 0);
    GW_ASSERT(gw_worker_size(&cfg) <= MEMORY_MAX);
    GW_ASSERT(gw_worker_init(&f->worker, f->memory[1], &cfg, f->host.endpoint) == GW_OK);
    gw_member_bind(f->member, f->worker);
}

static void poll(struct fuzz *f)
{
    struct gw_event event;
    while (gw_endpoint_poll(f->host.endpoint, &event, 1)) {
        switch (event.kind) {
        case GW_EVENT_JOINED:
            GW_ASSERT(f->is_member_due);
            total_in++;
            if (!f->worker && gw_member_state(f->member) == GW_MEMBER_IN)
                make_worker(f);
            break;
        case GW_EVENT_REFUSED:
            GW_ASSERT(f->is_member_due && event.reason != GW_JOB_OK);
            GW_ASSERT(event.reason < GW_JOB_REASONS);
            total_refused++;
            total_limits += event.reason == GW_JOB_LIMIT;
            break;
        case GW_EVENT_LEFT:
            GW_ASSERT(f->is_member_due);
            total_left++;
            break;
        default:
            GW_ASSERT(f->calls > 0);
            f->calls--;
            total_reduced += event.kind == GW_EVENT_REDUCED;
            total_failed += event.kind == GW_EVENT_FAILED;
            continue;
        }
        f->is_member_due = false;
    }
}

/* Lets everything leave, and learns from it what a server would. */
static void output(struct fuzz *f)
{
    for (uint32_t i = 0; i < OUTPUTS_MAX; i++) {
        struct gw_pkt *pkt;
        f->node->ready_count = 0;
        if ((gw_node_output(f->node, 0, &pkt, 1, f->now) & ~GW_OUTPUT_MORE) == 0)
            return;
        GW_ASSERT(pkt->dst == SERVER);
        if (pkt->q.kind == GW_PKT_JOB) {
            f->incarnation = pkt->key;
            f->epoch = pkt->epoch;
        } else {
            GW_ASSERT(pkt->agg.values >= 1 && pkt->agg.values <= VALUES);
            f->keys[pkt->seq % KEYS] = pkt->key;
        }
        gw_pkt_release(&f->host.pool, pkt);
    }
    GW_ASSERT(!"the worker stops talking");
}

static uint32_t expected(const struct fuzz *f)
{
    return f->worker ? gw_worker_expected(f->worker) : 0;
}

/* What of a worker strangers could change. */
struct view {
    enum gw_member_state state;
    uint32_t expected;
    uint64_t results, window;
};

static struct view look(const struct fuzz *f)
{
    struct view view = {.state = gw_member_state(f->member), .expected = expected(f)};
    if (f->worker) {
        view.results = gw_worker_stats(f->worker)->results;
        view.window = gw_worker_window(f->worker);
    }
    return view;
}

static uint16_t epoch_of(const struct fuzz *f)
{
    struct gw_worker_cfg cfg = {0};
    gw_member_worker_cfg(f->member, &cfg);
    return cfg.epoch;
}

static void feed(struct fuzz *f, struct gw_pkt *pkt)
{
    bool is_strange = pkt->src != SERVER;
    struct view before = look(f);
    uint16_t epoch = epoch_of(f);
    gw_node_input(f->node, 0, &pkt, 1, f->now);
    struct view after = look(f);
    /* With calls in work it goes on, never back. */
    if (f->calls && before.state == GW_MEMBER_JOINING && after.state == GW_MEMBER_IN)
        GW_ASSERT((int16_t)(epoch_of(f) - epoch) > 0);
    if (!is_strange)
        return;
    total_ignored++;
    GW_ASSERT(before.state == after.state && before.expected == after.expected);
    GW_ASSERT(before.results == after.results && before.window == after.window);
}

static struct gw_pkt *claim(struct fuzz *f, enum gw_pkt_kind kind, uint8_t who)
{
    struct gw_pkt *pkt = gw_pkt_claim(&f->host.pool);
    GW_ASSERT(pkt != NULL);
    *pkt = (struct gw_pkt){
        .q = {.size = 100, .kind = (uint8_t)kind, .class = GW_CLASS_CONTROL},
        .src = who % 8 == 7 ? STRANGER : SERVER,
        .dst = OWN,
        .flow = JOB,
        .epoch = f->epoch,
        .buf = GW_BUF_NONE,
    };
    return pkt;
}

/* A word of the server, possible but for what the steps change. */
static void input_job(struct fuzz *f)
{
    uint8_t who = take8(f), op = take8(f), what = take8(f), with = take8(f);
    struct gw_pkt *pkt = claim(f, GW_PKT_JOB, who);
    struct gw_job_terms terms = {
        .rank = RANK,
        .world = WORLD,
        .values = VALUES,
        .aggregators = 15,
        .level = who >> 3 & 1,
        .position = who >> 4 & 3,
        .window = WINDOW - 1,
        .indexing = who >> 6,
    };
    if (terms.indexing > GW_AGG_INDEX_STATIC)
        terms.indexing = GW_AGG_INDEX_HASH;
    pkt->agg_flags = op % 16 < GW_JOB_OPS ? op % 16 : GW_JOB_WELCOME;
    pkt->key = f->incarnation;
    pkt->seq = expected(f);
    pkt->index = op >> 4;
    pkt->scale = 20;
    if (pkt->agg_flags == GW_JOB_WELCOME) {
        pkt->epoch = (uint16_t)(f->epoch + 1);
        gw_job_terms_pack(&terms, pkt->job.word);
    }
    switch (what % 16) {
    case 0:
    case 1:
    case 2:
        pkt->job.word[what % 16] ^= UINT32_C(1) << (with % 32);
        break;
    case 3:
        pkt->job.word[1] = (uint32_t)with << 16 | 15; /* values */
        break;
    case 4:
        pkt->key ^= with;
        break;
    case 5:
        pkt->epoch = (uint16_t)(f->epoch + (uint32_t)with * 256 + what / 16);
        break;
    case 6:
        pkt->seq += (uint32_t)(int32_t)(int8_t)with * (what & 128 ? 1 << 24 : 1);
        break;
    case 7:
        pkt->scale = with;
        break;
    case 8:
        pkt->index = with;
        break;
    case 9:
        pkt->job.word[with % 3] = UINT32_MAX;
        break;
    default:
        break;
    }
    feed(f, pkt);
}

/* A result or a request near what is wanted. */
static void input_values(struct fuzz *f)
{
    uint8_t who = take8(f), what = take8(f), flags = take8(f), with = take8(f);
    struct gw_pkt *pkt = claim(f, GW_PKT_PARAM, who);
    pkt->seq = expected(f) + (what & 3);
    pkt->agg_flags = what & 4 ? flags & (uint8_t)~GW_AGG_SLOT : 0;
    pkt->index = with;
    pkt->scale = what & 8 ? with : GW_PKT_SCALE_NONE;
    pkt->agg.bitmap = what & 16 ? (uint32_t)with << (flags & 1 ? GW_AGG_LACK_SHIFT : 0) : 0;
    pkt->agg.values = what & 32 ? with : VALUES;
    pkt->key = what & 64 ? with : f->keys[pkt->seq % KEYS];
    if (what & 128)
        pkt->seq += (uint32_t)(int32_t)(int8_t)with;
    if (pkt->agg_flags & (GW_AGG_REQUEST | GW_AGG_FAILED) || pkt->agg.values > VALUES)
        pkt->agg.values = pkt->agg.values > VALUES ? 1 : 0;
    if (pkt->agg.values && (pkt->buf = gw_buf_claim(&f->host.bufs)) == GW_BUF_NONE)
        pkt->agg.values = 0;
    if (pkt->buf != GW_BUF_NONE)
        memset(gw_buf_bytes(&f->host.bufs, pkt->buf), with, sizeof(int32_t) * VALUES);
    feed(f, pkt);
}

/* The server answers all that is out, as it should. */
static void answer(struct fuzz *f)
{
    for (uint32_t i = 0; f->worker && i < WINDOW; i++) {
        struct gw_pkt *pkt = claim(f, GW_PKT_PARAM, 0);
        pkt->seq = expected(f);
        pkt->key = f->keys[pkt->seq % KEYS];
        pkt->scale = GW_PKT_SCALE_NONE;
        pkt->agg.values = VALUES;
        pkt->buf = gw_buf_claim(&f->host.bufs);
        GW_ASSERT(pkt->buf != GW_BUF_NONE);
        memset(gw_buf_bytes(&f->host.bufs, pkt->buf), 0, sizeof(int32_t) * VALUES);
        feed(f, pkt);
        output(f);
    }
}

static void call(struct fuzz *f, uint8_t how)
{
    if (how & 3) {
        if (!f->worker || gw_member_state(f->member) != GW_MEMBER_IN)
            return;
        struct gw_tensor tensor = {.in = f->in[how >> 2 & 1],
                                   .out = f->out[how >> 2 & 1],
                                   .count = CALL,
                                   .type = GW_DTYPE_F32,
                                   .op = how & 8 ? GW_OP_AVERAGE : GW_OP_SUM,
                                   .bound = how & 16 ? GW_Q16_ONE / 2 : 0};
        f->calls += gw_worker_reduce(f->worker, &tensor, f->now) == GW_OK;
    } else if (how & 4 && gw_member_join(f->member, f->now) == GW_OK) {
        f->is_member_due = true;
    } else if (how >= 240 && f->calls == 0 && gw_member_leave(f->member, f->now) == GW_OK) {
        f->is_member_due = true;
    }
}

static void pass_time(struct fuzz *f)
{
    uint8_t step = take8(f);
    gw_test_pass_time(f->node, &f->now, step, (gw_time)step * 100 * GW_NS);
}

static void fuzz_open(struct fuzz *f)
{
    struct gw_endpoint_cfg host = gw_test_host_cfg(OWN, 4 * VALUES);
    host.apps_max = 2;
    host.app_events_max = 8;
    gw_test_host_open(&f->host, &host, PKTS);
    f->node = gw_endpoint_node(f->host.endpoint);
    f->now = (gw_time)0 - GW_MS; /* the clock wraps soon */
    f->incarnation = INCARNATION;
    f->memory[0] = gw_test_take(gw_member_size());
    f->memory[1] = gw_test_take(MEMORY_MAX);
    struct gw_member_cfg cfg = {
        .job = JOB,
        .server = SERVER,
        .rank = RANK,
        .incarnation = INCARNATION,
        .retry = 20 * GW_US,
        .beat = 100 * GW_US,
        .stall = 2 * GW_MS,
        .limits = {.world = WORLD, .values_max = VALUES, .window_max = WINDOW},
    };
    GW_ASSERT(gw_member_init(&f->member, f->memory[0], &cfg, f->host.endpoint) == GW_OK);
    call(f, 4);
    output(f);
}

static void fuzz_close(struct fuzz *f)
{
    if (f->worker) {
        total_results += gw_worker_stats(f->worker)->results;
        total_stale += gw_worker_stats(f->worker)->stale;
        gw_worker_fini(f->worker);
    }
    gw_member_fini(f->member);
    output(f);
    free(f->memory[0]);
    free(f->memory[1]);
    gw_test_host_close(&f->host); /* checks that every packet and buffer is back */
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct fuzz f;
    f = (struct fuzz){.steps = {data, size}};
    fuzz_open(&f);
    while (f.steps.left) {
        uint8_t step = take8(&f);
        enum gw_member_state before = gw_member_state(f.member);
        if (step % 8 < 2)
            input_job(&f);
        else if (step % 8 < 4)
            input_values(&f);
        else if (step % 8 < 5)
            answer(&f);
        else if (step % 8 < 6)
            pass_time(&f);
        else
            call(&f, take8(&f));
        poll(&f);
        output(&f);
        total_again += before == GW_MEMBER_IN && gw_member_state(f.member) == GW_MEMBER_JOINING;
    }
    fuzz_close(&f);
    return 0;
}

enum {
    ROUNDS = 40000,
};

static void check_reached(void)
{
    print_message("in %llu, again %llu, refused %llu (limits %llu), left %llu, reduced %llu, "
                  "failed %llu, results %llu, stale %llu, strange %llu\n",
                  (unsigned long long)total_in, (unsigned long long)total_again,
                  (unsigned long long)total_refused, (unsigned long long)total_limits,
                  (unsigned long long)total_left, (unsigned long long)total_reduced,
                  (unsigned long long)total_failed, (unsigned long long)total_results,
                  (unsigned long long)total_stale, (unsigned long long)total_ignored);
    assert_true(total_in > ROUNDS / 2 && total_again > ROUNDS / 50);
    assert_true(total_refused > ROUNDS / 50 && total_limits > ROUNDS / 200);
    assert_true(total_left > ROUNDS / 200 && total_reduced > ROUNDS / 10);
    assert_true(total_failed > ROUNDS / 50 && total_results > ROUNDS / 2);
    assert_true(total_stale > ROUNDS / 10 && total_ignored > ROUNDS / 10);
}

const struct gw_test_target gw_test_target = {
    .corpus = "member",
    .seed = 18,
    .rounds = ROUNDS,
    .check_reached = check_reached,
};
