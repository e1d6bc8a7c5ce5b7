/*
 * Fuzz target: a switch that makes room, fed with any notices, heads, gradients and datagrams at
 * any time, by any port, while ports are closed.
 *
 * The input is a program of small steps. Properties: no crash, no packet is lost or freed twice,
 * all books agree after each step, a port is never low for longer than promised, nothing is open
 * that is older than `hold`, and after another `hold` all ports have their own threshold.
 */
#include "fuzz/replay.h"
#include "pool_fixture.h"
#include "support.h"
#include "switch_fixture.h"

#include "base/assert.h"
#include "base/cpu.h"
#include "core/codec.h"

enum {
    HOSTS = 4, /* 3 is behind two ports */
    PORTS = 5,
    JOBS = 4, /* numbers that packets may name; 0 is added up, 1 is in slots */
    ACCOUNTS = 3,
    ANNOUNCEMENTS = 2,
    SIZE = 1500,
    HDR = 52,
    PKTS = 64,
    STORAGE = 32768,
};

#define COOKIE UINT64_C(0x0123456789abcdef)
#define HOLD   (400 * GW_US)
#define SAVE   (2 * HOLD)

static const struct gw_codec codec = {.cookie = COOKIE};

/* How far the runs got; a target that reaches nothing tests nothing. */
static struct gw_switch_notice_stats total;

struct fuzz {
    struct gw_pkt_pool pool;
    struct gw_switch *sw;
    struct gw_node *node;
    struct gw_aggregate *aggregate;
    struct gw_slots *slots;
    gw_time now;
    gw_time passed;
    struct gw_test_steps steps;
};

static uint8_t take8(struct fuzz *f)
{
    return gw_test_step(&f->steps);
}

static struct gw_pkt *claim(struct fuzz *f)
{
    struct gw_pkt *pkt = gw_pkt_claim(&f->pool);
    GW_ASSERT(pkt != NULL);
    return pkt;
}

static void output(struct fuzz *f)
{
    for (uint16_t i = 0; i < f->node->ready_count; i++) {
        struct gw_pkt *pkt;
        while (gw_node_output(f->node, f->node->ready[i], &pkt, 1, f->now) & ~GW_OUTPUT_MORE) {
            GW_ASSERT(!(pkt->q.flags & GW_PKT_HEAD) || pkt->q.kind != GW_PKT_PARAM);
            gw_pkt_release(&f->pool, pkt);
        }
    }
    f->node->ready_count = 0;
}

static void check(const struct fuzz *f)
{
    const struct gw_switch_notice *notice = gw_switch_notices(f->sw);
    gw_switch_notice_check(notice);
    for (uint16_t port = 0; port < PORTS; port++) {
        struct gw_switch_notice_stats stats = gw_switch_notice_stats(notice, port, f->now);
        GW_ASSERT(stats.lowered <= f->passed / 4 + SAVE + ACCOUNTS * HOLD);
    }
}

static void feed(struct fuzz *f, struct gw_pkt *pkt, uint16_t in)
{
    gw_node_input(f->node, in, &pkt, 1, f->now);
    output(f);
    check(f);
}

static void input_datagram(struct fuzz *f)
{
    struct gw_frame frame = {.tos = take8(f), .entropy = take8(f)};
    struct gw_pkt *pkt = claim(f);
    frame.length = take8(f);
    uint32_t hdr_size = frame.length < GW_WIRE_HDR_MAX ? frame.length : GW_WIRE_HDR_MAX;
    for (uint32_t i = 0; i < hdr_size; i++)
        frame.hdr[i] = take8(f);
    if (gw_codec_decode(&codec, &frame, f->now, pkt) == 0) {
        feed(f, pkt, 0);
    } else {
        pkt->buf = GW_BUF_NONE;
        gw_pkt_release(&f->pool, pkt);
    }
}

/* A packet whose identity is one of few, so that packets of one burst meet. */
static struct gw_pkt *claim_pkt(struct fuzz *f, enum gw_pkt_kind kind)
{
    struct gw_pkt *pkt = claim(f);
    uint8_t who = take8(f);
    *pkt = (struct gw_pkt){
        .q = {.size = HDR, .kind = (uint8_t)kind & 15},
        .src = who & 3,
        .dst = who >> 2 & 3,
        .flow = who >> 4 & 3,
        .epoch = 1,
        .entropy = who >> 6,
        .buf = GW_BUF_NONE,
    };
    pkt->q.key = gw_flow_key(pkt->src, pkt->dst, pkt->flow);
    return pkt;
}

static void input_notice(struct fuzz *f)
{
    struct gw_pkt *pkt = claim_pkt(f, GW_PKT_NOTICE);
    uint8_t what = take8(f);
    pkt->notice.job = what & 3;
    pkt->notice.units = what >> 2 & 31;
    pkt->notice.is_answer = what >> 7;
    feed(f, pkt, take8(f) % PORTS);
}

static void input_data(struct fuzz *f)
{
    struct gw_pkt *pkt = claim_pkt(f, GW_PKT_DATA);
    pkt->q.flags = take8(f);
    pkt->q.ecn = GW_ECN_ECT0;
    feed(f, pkt, take8(f) % PORTS);
}

static void input_gradient(struct fuzz *f)
{
    struct gw_pkt *pkt = claim_pkt(f, GW_PKT_GRAD);
    uint8_t what = take8(f);
    pkt->q.flags = what & 1 ? GW_PKT_HEAD : 0;
    pkt->agg_flags = what & 2 ? GW_AGG_RESEND : 0;
    if (pkt->flow == 1)
        pkt->agg_flags = GW_AGG_SLOT;
    pkt->seq = what >> 2 & 3;
    pkt->index = what >> 2 & 1;
    pkt->agg.values = 1;
    pkt->agg.level = what >> 4 & 3;
    pkt->agg.bitmap = what & 128 ? take8(f) : 1u << pkt->src;
    feed(f, pkt, take8(f) % PORTS);
}

static void pass(struct fuzz *f, gw_time time)
{
    f->passed += time;
    f->now += time;
    gw_node_expire(f->node, f->now);
    output(f);
    check(f);
    gw_time deadline = gw_switch_notice_deadline(gw_switch_notices(f->sw));
    GW_ASSERT(deadline == GW_TIME_NEVER ||
              (gw_time_before(f->now, deadline) && deadline - f->now <= HOLD));
}

static void pass_time(struct fuzz *f)
{
    uint8_t step = take8(f);
    gw_time deadline = gw_node_deadline(f->node);
    if (deadline != GW_TIME_NEVER && gw_time_before(f->now, deadline) && step & 1)
        pass(f, deadline - f->now);
    else
        pass(f, (gw_time)step * GW_US);
}

static void close_port(struct fuzz *f)
{
    uint16_t port = take8(f) % PORTS;
    gw_switch_close_port(f->sw, port, f->now);
    check(f);
    GW_ASSERT(gw_switch_notice_open(gw_switch_notices(f->sw), port) == 0);
}

static void open_stages(struct fuzz *f)
{
    static _Alignas(64) unsigned char storage[2][STORAGE];
    static const uint32_t members[] = {0, 1, 2};
    static const uint16_t workers[] = {3, 1, 2};
    const struct gw_kernels *kernels = gw_kernels_best(gw_cpu_features());
    const struct gw_aggregate_cfg cfg = {.aggregators = 2,
                                         .jobs_max = 1,
                                         .members_max = 3,
                                         .leak = GW_MS,
                                         .kernels = kernels,
                                         .pool = &f->pool};
    const struct gw_slots_cfg slots = {
        .slots = 2, .jobs_max = 1, .kernels = kernels, .pool = &f->pool};
    const struct gw_slots_job slots_job = {
        .job = 1, .epoch = 1, .world = 3, .count = 2, .members = members};
    GW_ASSERT(gw_aggregate_size(&cfg) <= STORAGE && gw_slots_size(&slots) <= STORAGE);
    f->aggregate = gw_aggregate_init(storage[0], &cfg);
    f->slots = gw_slots_init(storage[1], &slots);
    GW_ASSERT(gw_slots_install(f->slots, &slots_job) == 0);
    uint8_t how = take8(f);
    const struct gw_aggregate_job job = {.job = 0,
                                         .epoch = 1,
                                         .level = how % 3,
                                         .fan_in = 3,
                                         .member_count = 3,
                                         .members = members,
                                         .workers = how & 128 ? workers : NULL};
    GW_ASSERT(gw_aggregate_install(f->aggregate, &job) == 0);
}

static void fuzz_open(struct fuzz *f)
{
    static _Alignas(64) unsigned char storage[STORAGE];
    static struct gw_pkt pkts[PKTS];
    static const uint16_t leaves[] = {0, 1, 2, GW_ROUTE_SET}, both[] = {3, 4};
    static const struct gw_switch_set sets[] = {{.first = 0, .count = 2}};
    static const struct gw_switch_notice_cfg notice = {
        .packet = SIZE,
        .floor = 5,
        .hold = HOLD,
        .share = GW_Q16_ONE / 4,
        .save = SAVE,
        .jobs_max = ACCOUNTS,
        .announcements_max = ANNOUNCEMENTS,
    };
    gw_pkt_pool_init(&f->pool, pkts, 0, PKTS, NULL);
    open_stages(f);
    struct gw_switch_cfg cfg = gw_test_switch_cfg(PORTS, "red", &f->pool);
    cfg.trim_size = HDR;
    cfg.aggregate = f->aggregate;
    cfg.slots = f->slots;
    cfg.notice = &notice;
    cfg.routes = gw_test_routes(leaves, HOSTS);
    cfg.routes.sets = sets;
    cfg.routes.members = both;
    GW_ASSERT(gw_switch_size(&cfg) <= STORAGE);
    f->sw = gw_switch_init(storage, &cfg);
    f->node = gw_switch_node(f->sw);
    f->now = (gw_time)0 - GW_MS; /* the clock wraps soon */
}

static void add_up(const struct fuzz *f)
{
    struct gw_switch_notice_stats stats = gw_switch_notice_total(gw_switch_notices(f->sw), f->now);
    total.repeated += stats.repeated;
    total.refused += stats.refused;
    total.no_room += stats.no_room;
    total.heads += stats.heads;
    total.recoveries += stats.recoveries;
    total.moved += stats.moved;
    total.dropped += stats.dropped;
}

static void fuzz_close(struct fuzz *f)
{
    pass(f, HOLD);
    GW_ASSERT(gw_switch_notice_deadline(gw_switch_notices(f->sw)) == GW_TIME_NEVER);
    for (uint16_t port = 0; port < PORTS; port++)
        GW_ASSERT(gw_switch_notice_threshold(gw_switch_notices(f->sw), port) == UINT32_MAX);
    add_up(f);
    gw_aggregate_fini(f->aggregate);
    gw_slots_remove(f->slots, 1);
    GW_ASSERT(gw_test_pool_free(&f->pool) == PKTS);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz f = {.steps = {data, size}};
    fuzz_open(&f);
    while (f.steps.left) {
        switch (take8(&f) % 8) {
        case 0:
            input_datagram(&f);
            break;
        case 1:
            pass_time(&f);
            break;
        case 2:
            input_data(&f);
            break;
        case 3:
        case 4:
            input_gradient(&f);
            break;
        case 5:
            if (take8(&f) % 4 == 0) {
                close_port(&f);
                break;
            }
            /* fall through */
        default:
            input_notice(&f);
        }
    }
    fuzz_close(&f);
    return 0;
}

enum {
    ROUNDS = 60000,
};

static void check_reached(void)
{
    print_message("repeated %llu, refused %llu, no room %llu, heads %llu, recoveries %llu, "
                  "moved %llu, dropped %llu\n",
                  (unsigned long long)total.repeated, (unsigned long long)total.refused,
                  (unsigned long long)total.no_room, (unsigned long long)total.heads,
                  (unsigned long long)total.recoveries, (unsigned long long)total.moved,
                  (unsigned long long)total.dropped);
    assert_true(total.repeated > ROUNDS / 50 && total.refused > ROUNDS / 50);
    assert_true(total.no_room > ROUNDS / 50 && total.heads > ROUNDS / 50);
    assert_true(total.recoveries > ROUNDS / 50 && total.moved > ROUNDS / 50);
    assert_true(total.dropped > ROUNDS / 50);
}

const struct gw_test_target gw_test_target = {
    .corpus = "notice",
    .seed = 15,
    .rounds = ROUNDS,
    .check_reached = check_reached,
};
