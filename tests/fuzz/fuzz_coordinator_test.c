/*
 * Fuzz target: the coordinator and the server of a job, to which workers, switches and strangers
 * say anything at any time: well-formed packets of job control and gradients, of which any number
 * may be impossible.
 *
 * The input is a program of small steps. Each worker's values are a digit of their own. Properties:
 * no crash, no assertion; the tree of an epoch is possible; without switches every sum has every
 * worker once; while every seat is taken, a stranger ends no epoch, and where only strangers
 * misbehave, the next fragment has its result as soon as all have sent it; no packet or buffer is
 * lost; output and expire come to an end.
 */
#include "fuzz/posted.h"
#include "fuzz/node_time.h"
#include "fuzz/replay.h"
#include "host.h"
#include "support.h"

#include "base/assert.h"
#include "base/cpu.h"
#include "base/error.h"
#include "core/aggregation/agg_key.h"
#include "core/aggregation/server_impl.h"
#include "core/control/coordinator_impl.h"

enum {
    JOB = 3,
    SERVER = 9,
    STRANGER = 50,
    ROOT = 100, /* switches: the root, and the rack of the first two workers */
    RACK = 101,
    WORLD = 3,
    VALUES = 2,
    WINDOW = 4,
    AGGREGATORS = 16,
    FIRST_SEQ = 70,
    SUM = 0x111, /* of all */
    PKTS = 128,
    OUTPUTS_MAX = 4096,
};

#define INCARNATION UINT32_C(77)

/* How far the runs got; a target that reaches nothing tests nothing. */
static uint64_t total_epochs, total_silences, total_refused, total_stray, total_results,
    total_stale, total_strange, total_steady, total_closed;

struct fuzz {
    struct gw_test_host host;
    struct gw_node *node;
    struct gw_server *server;
    struct gw_coordinator *coordinator;
    void *memory[2];
    struct gw_test_steps steps;
    uint32_t lives[WORLD];
    struct gw_job_terms places[WORLD]; /* of the last WELCOMEs */
    uint16_t epoch;                    /* likewise */
    struct gw_pkt installs[2];         /* the last to each switch */
    bool is_clean; /* in this epoch no worker has sent anything but what it should */
    gw_time now;
};

static uint8_t take8(struct fuzz *f)
{
    return gw_test_step(&f->steps);
}

static uint32_t life_of(const struct fuzz *f, uint32_t rank)
{
    return (rank + 1) << 16 | (f->lives[rank] + 1);
}

static void check_result(const struct fuzz *f, const struct gw_pkt *pkt)
{
    uint32_t values[VALUES];
    if (pkt->agg_flags & (GW_AGG_REQUEST | GW_AGG_FAILED) || f->server->levels > 0)
        return;
    GW_ASSERT(pkt->agg.values >= 1 && pkt->agg.values <= VALUES && pkt->buf != GW_BUF_NONE);
    memcpy(values, gw_buf_bytes(&f->host.bufs, pkt->buf), sizeof(values));
    for (uint32_t i = 0; i < pkt->agg.values; i++)
        GW_ASSERT(values[i] == SUM);
}

static void take_word(struct fuzz *f, const struct gw_pkt *pkt)
{
    if (pkt->agg_flags == GW_JOB_WELCOME) {
        struct gw_job_terms terms = gw_job_terms_unpack(pkt->job.word);
        GW_ASSERT(terms.rank < WORLD && terms.world == WORLD && terms.level < GW_LEVELS_MAX);
        f->is_clean &= pkt->epoch == f->epoch;
        if (pkt->epoch != f->epoch)
            f->is_clean = true;
        f->epoch = pkt->epoch;
        f->places[terms.rank] = terms;
    } else if (pkt->agg_flags == GW_JOB_INSTALL) {
        GW_ASSERT(pkt->seq <= GW_FAN_IN_MAX && pkt->index < pkt->seq);
        if (pkt->job.word[2] - ROOT < 2)
            f->installs[pkt->job.word[2] - ROOT] = *pkt;
    }
}

static void output(struct fuzz *f)
{
    for (uint32_t i = 0; i < OUTPUTS_MAX; i++) {
        struct gw_pkt *pkt;
        f->node->ready_count = 0;
        if ((gw_node_output(f->node, 0, &pkt, 1, f->now) & ~GW_OUTPUT_MORE) == 0)
            return;
        if (pkt->q.kind == GW_PKT_JOB)
            take_word(f, pkt);
        else
            check_result(f, pkt);
        gw_pkt_release(&f->host.pool, pkt);
    }
    GW_ASSERT(!"the server stops talking");
}

static void feed(struct fuzz *f, struct gw_pkt *pkt)
{
    bool is_strange = pkt->src == STRANGER, is_full = true;
    for (uint32_t rank = 0; rank < WORLD; rank++)
        is_full &= f->coordinator->seats[rank].state == GW_SEAT_IN &&
                   f->coordinator->seats[rank].address != STRANGER; /* who came first */
    bool is_steady = is_strange && is_full && f->coordinator->phase == GW_COORDINATOR_RUNNING;
    uint16_t epoch = f->coordinator->epoch;
    gw_node_input(f->node, 0, &pkt, 1, f->now);
    total_strange += is_strange;
    if (is_steady)
        GW_ASSERT(f->coordinator->phase == GW_COORDINATOR_RUNNING &&
                  f->coordinator->epoch == epoch && !f->server->is_stopped);
}

static struct gw_pkt *claim(struct fuzz *f, enum gw_pkt_kind kind, uint32_t src)
{
    struct gw_pkt *pkt = gw_pkt_claim(&f->host.pool);
    GW_ASSERT(pkt != NULL);
    *pkt = (struct gw_pkt){
        .q = {.size = 100, .kind = (uint8_t)kind, .class = GW_CLASS_CONTROL},
        .src = src,
        .dst = SERVER,
        .flow = JOB,
        .epoch = f->epoch,
        .buf = GW_BUF_NONE,
    };
    return pkt;
}

/* What a worker says of itself. */
static struct gw_pkt *word_of(struct fuzz *f, uint32_t rank, enum gw_job_op op)
{
    struct gw_pkt *pkt = claim(f, GW_PKT_JOB, rank + 1);
    pkt->agg_flags = (uint8_t)op;
    pkt->key = life_of(f, rank);
    pkt->index = (uint16_t)rank;
    pkt->seq = f->server->expected;
    if (op != GW_JOB_JOIN)
        return pkt;
    pkt->scale = rank < 2 ? 2 : 1;
    pkt->job.word[0] = rank < 2 ? RACK : ROOT;
    pkt->job.word[1] = rank < 2 ? ROOT : 0;
    return pkt;
}

static struct gw_pkt *confirm_of(struct fuzz *f, uint32_t index)
{
    const struct gw_pkt *install = &f->installs[index];
    struct gw_pkt *pkt = claim(f, GW_PKT_JOB, ROOT + index);
    pkt->agg_flags = GW_JOB_INSTALLED;
    pkt->key = install->key;
    pkt->epoch = install->epoch;
    pkt->seq = install->seq;
    pkt->job.word[2] = ROOT + index;
    return pkt;
}

/* What a worker sends of a fragment. */
static struct gw_pkt *gradient_of(struct fuzz *f, uint32_t rank, uint32_t seq)
{
    const struct gw_job_terms *place = &f->places[rank];
    uint32_t values[VALUES] = {UINT32_C(1) << 4 * rank, UINT32_C(1) << 4 * rank};
    struct gw_pkt *pkt = claim(f, GW_PKT_GRAD, rank + 1);
    pkt->key = gw_agg_key(FIRST_SEQ, GW_DTYPE_I32, false);
    pkt->seq = seq;
    pkt->scale = GW_PKT_SCALE_NONE;
    pkt->agg.values = VALUES;
    pkt->agg.level = place->level;
    memcpy(pkt->agg.above, place->above, sizeof(place->above));
    pkt->agg.bitmap =
        UINT32_C(1) << (place->level ? place->above[place->level - 1] : place->position);
    pkt->buf = gw_buf_claim(&f->host.bufs);
    GW_ASSERT(pkt->buf != GW_BUF_NONE);
    memcpy(gw_buf_bytes(&f->host.bufs, pkt->buf), values, sizeof(values));
    return pkt;
}

/* Changes a word into one that may be impossible; or makes it a stranger's. */
static void spoil_word(struct fuzz *f, struct gw_pkt *pkt)
{
    uint8_t what = take8(f), with = take8(f);
    switch (what % 16) {
    case 0:
    case 1:
    case 2:
        pkt->job.word[what % 16] = what & 128 ? UINT32_MAX : ROOT + with % 4u;
        break;
    case 3:
        pkt->scale = with;
        break;
    case 4:
        pkt->key = what & 128 ? 0 : pkt->key + with;
        break;
    case 5:
        pkt->epoch = (uint16_t)((uint32_t)with * 256 + what);
        break;
    case 6:
        pkt->seq = (uint32_t)with << (what >> 4) * 2;
        break;
    case 7:
        pkt->index = what & 128 ? GW_RANK_NONE : with;
        break;
    case 8:
        pkt->q.flags = (uint8_t)(with << GW_JOB_OPTION_SHIFT);
        break;
    case 9:
        pkt->src = 1 + with % WORLD;
        break;
    case 10:
    case 11:
    case 12:
        pkt->src = STRANGER;
        if (pkt->agg_flags != GW_JOB_INSTALLED)
            pkt->key = with; /* no worker's: they are 32 bits, and secret */
        if (pkt->agg_flags == GW_JOB_JOIN)
            pkt->index = what >> 4 == 15 ? GW_RANK_NONE : what >> 4;
        break;
    default:
        break;
    }
    if (pkt->agg_flags != GW_JOB_JOIN)
        pkt->q.flags = 0;
}

static void input_word(struct fuzz *f)
{
    static const uint8_t ops[] = {GW_JOB_JOIN, GW_JOB_JOIN, GW_JOB_READY, GW_JOB_LEAVE};
    uint8_t who = take8(f);
    uint32_t rank = who % WORLD;
    struct gw_pkt *pkt;
    if (who & 128) {
        pkt = confirm_of(f, who & 1);
    } else {
        pkt = word_of(f, rank, ops[who >> 2 & 3]);
        if (pkt->agg_flags == GW_JOB_JOIN)
            pkt->scale |= (uint8_t)(who >> 1 & (GW_JOB_PATH_FRESH | GW_JOB_PATH_UNTOUCHED));
    }
    spoil_word(f, pkt);
    feed(f, pkt);
}

static void input_gradient(struct fuzz *f)
{
    uint8_t who = take8(f), what = take8(f), with = take8(f), flags = take8(f);
    struct gw_pkt *pkt = gradient_of(f, who % WORLD, f->server->expected + (who >> 4 & 3));
    if (who & 128)
        pkt->src = STRANGER;
    else
        f->is_clean = false;
    pkt->agg_flags = what & 128 ? flags & (uint8_t)~GW_AGG_SLOT : 0;
    if (pkt->agg_flags & GW_AGG_FINAL)
        for (uint32_t i = 0; i < VALUES; i++)
            ((uint32_t *)gw_buf_bytes(&f->host.bufs, pkt->buf))[i] = SUM;
    switch (what % 8) {
    case 0:
        pkt->agg.bitmap = (uint32_t)with << (flags & 24);
        break;
    case 1:
        pkt->agg.level = with;
        break;
    case 2:
        pkt->agg.above[flags & 1] = with;
        break;
    case 3:
        pkt->agg.values = with;
        break;
    case 4:
        pkt->key ^= (uint32_t)with << 3;
        break;
    case 5:
        pkt->seq += (uint32_t)(int32_t)(int8_t)with * (flags & 1 ? 1 << 24 : 1);
        break;
    case 6:
        pkt->epoch ^= with;
        break;
    default:
        pkt->scale = pkt->agg.bound = with;
        pkt->index = flags;
    }
    if (pkt->agg.values > VALUES)
        pkt->agg.values = VALUES;
    feed(f, pkt);
}

/* All join, and the switches confirm. */
static void form(struct fuzz *f)
{
    for (uint32_t rank = 0; rank < WORLD; rank++) {
        struct gw_pkt *pkt = word_of(f, rank, GW_JOB_JOIN);
        pkt->scale |= GW_JOB_PATH_FRESH;
        feed(f, pkt);
        output(f);
    }
    for (uint32_t i = 0; i < 2; i++) {
        feed(f, confirm_of(f, i));
        output(f);
    }
}

/* All send the next fragment, and a stranger meddles. */
static void send_all(struct fuzz *f)
{
    bool is_steady = f->is_clean && !f->server->is_stopped && f->server->epoch == f->epoch;
    uint8_t with = take8(f);
    uint32_t seq = f->server->expected;
    for (uint32_t rank = 0; rank < WORLD; rank++)
        is_steady &= f->server->addresses[rank] == rank + 1;
    for (uint32_t rank = 0; rank < WORLD; rank++) {
        if (with & 1 && f->server->levels == 0) {
            struct gw_pkt *pkt = gradient_of(f, with % WORLD, seq);
            pkt->src = STRANGER;
            pkt->agg_flags = with & 2 ? GW_AGG_RAW | GW_AGG_RESEND : 0;
            feed(f, pkt);
        }
        feed(f, gradient_of(f, rank, seq));
        output(f);
    }
    if (is_steady && f->server->levels == 0) {
        GW_ASSERT(f->server->expected == seq + 1);
        total_steady++;
    }
}

static void pass_time(struct fuzz *f)
{
    uint8_t step = take8(f);
    gw_test_pass_time(f->node, &f->now, step, (gw_time)step * 100 * GW_US);
}

static void fuzz_open(struct fuzz *f)
{
    static const struct gw_notice_path path = {
        .rtt = 13300 * GW_US, .rate_bps = 100000000, .packet = 1500};
    struct gw_endpoint_cfg host = gw_test_host_cfg(SERVER, 4 * VALUES);
    host.apps_max = 2;
    host.control_max = 64;
    gw_test_host_open(&f->host, &host, PKTS);
    f->node = gw_endpoint_node(f->host.endpoint);
    f->now = (gw_time)0 - GW_MS; /* the clock wraps soon */
    uint8_t shape = take8(f);
    struct gw_server_cfg server = {.job = JOB,
                                   .world = WORLD,
                                   .levels = GW_LEVELS_MAX,
                                   .values = VALUES,
                                   .window_max = WINDOW,
                                   .aggregators = AGGREGATORS,
                                   .raw_max = 2,
                                   .retry = GW_US,
                                   .quiet = shape & 4 ? 30 * GW_US : 0,
                                   .kernels = gw_kernels_best(gw_cpu_features())};
    f->memory[0] = gw_test_take(gw_server_size(&server));
    GW_ASSERT(gw_server_init(&f->server, f->memory[0], &server, f->host.endpoint) == GW_OK);
    struct gw_coordinator_cfg cfg = {.job = JOB,
                                     .world = WORLD,
                                     .levels = shape & 3,
                                     .window_max = WINDOW,
                                     .values = VALUES,
                                     .aggregators = AGGREGATORS,
                                     .incarnation = INCARNATION,
                                     .first_seq = FIRST_SEQ,
                                     .retry = GW_MS,
                                     .beat = 5 * GW_MS,
                                     .silence = 20 * GW_MS,
                                     .agrees_exponents = shape & 8,
                                     .notice_path = path,
                                     .server = f->server};
    f->memory[1] = gw_test_take(gw_coordinator_size(&cfg));
    GW_ASSERT(gw_coordinator_init(&f->coordinator, f->memory[1], &cfg, f->host.endpoint) == GW_OK);
}

static void fuzz_close(struct fuzz *f)
{
    const struct gw_coordinator_stats *said = gw_coordinator_stats(f->coordinator);
    const struct gw_server_stats *stats = gw_server_stats(f->server);
    total_epochs += said->epochs;
    total_silences += said->silences;
    total_refused += said->refused;
    total_stray += said->stray;
    total_results += stats->results;
    total_stale += stats->stale;
    gw_coordinator_fini(f->coordinator);
    gw_server_fini(f->server);
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
        enum gw_coordinator_phase before = gw_coordinator_phase(f.coordinator);
        if (step % 8 < 2)
            input_word(&f);
        else if (step % 8 < 4)
            input_gradient(&f);
        else if (step % 8 < 5)
            send_all(&f);
        else if (step % 8 < 6)
            pass_time(&f);
        else if (step % 8 < 7)
            form(&f);
        else if (step >= 128)
            f.lives[step % WORLD]++;
        output(&f);
        total_closed += before == GW_COORDINATOR_RUNNING &&
                        gw_coordinator_phase(f.coordinator) == GW_COORDINATOR_CLOSING;
    }
    fuzz_close(&f);
    return 0;
}

enum {
    ROUNDS = 30000,
};

static void check_reached(void)
{
    print_message("epochs %llu, silences %llu, refused %llu, stray %llu, results %llu, "
                  "stale %llu, strange %llu, steady %llu, closed %llu\n",
                  (unsigned long long)total_epochs, (unsigned long long)total_silences,
                  (unsigned long long)total_refused, (unsigned long long)total_stray,
                  (unsigned long long)total_results, (unsigned long long)total_stale,
                  (unsigned long long)total_strange, (unsigned long long)total_steady,
                  (unsigned long long)total_closed);
    assert_true(total_epochs > ROUNDS / 2 && total_silences > ROUNDS / 100);
    assert_true(total_refused > ROUNDS / 20 && total_stray > ROUNDS / 20);
    assert_true(total_results > ROUNDS / 2 && total_stale > ROUNDS / 5);
    assert_true(total_strange > ROUNDS / 10 && total_steady > ROUNDS / 10);
    assert_true(total_closed > ROUNDS / 100);
}

const struct gw_test_target gw_test_target = {
    .corpus = "coordinator",
    .seed = 19,
    .rounds = ROUNDS,
    .check_reached = check_reached,
};
