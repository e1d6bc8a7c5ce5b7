/*
 * Fuzz target: a worker, its server and the aggregation stage between them, or a worker of slots
 * and their stage, fed with any gradient and parameter packets at any time.
 *
 * The job has two workers. One of them and the server run on one endpoint, whose packets come back
 * to it through the stages or are lost; the other worker is the input. That is a program of small
 * steps: a datagram through the codec, a packet that is almost right, time passing, packets
 * leaving, a tensor to reduce. Properties: no crash, no packet or buffer is lost or freed twice,
 * output and expire come to an end, what leaves survives the codec, tensors are not overrun (the
 * sanitizer sees it), and each tensor ends at most once.
 */
#include "fuzz/replay.h"
#include "host.h"
#include "support.h"

#include "base/assert.h"
#include "base/cpu.h"
#include "core/switch/aggregate.h"
#include "core/codec.h"
#include "core/aggregation/server.h"
#include "core/aggregation/slot_worker.h"
#include "core/aggregation/worker.h"
#include "core/switch/slots.h"

enum {
    OURS = 1,
    THEIRS = 2,
    OURS_OUTSIDE = 3, /* what ours is called on the other side of the switch, so that the worker's
                         packets pass it on their way to the server on the same host */
    JOB = 3,
    OTHER_JOB = JOB + 1, /* of others, who take aggregators with it */
    EPOCH = 9,
    VALUES = 8,
    MTU = 4 * 2 * VALUES, /* a packet may have more values than a fragment */
    WINDOW = 8,
    AGGREGATORS = 5, /* collisions are common */
    SLOTS = 3,
    TENSORS_MAX = 3,
    REDUCTIONS_MAX = 16,
    COUNT_MAX = 3 * VALUES + 5,
    PKTS = 256,
    BATCH = 8,
    OUTPUTS_MAX = 4096, /* packets that bounded windows may emit at one instant */
    KEPT = 4,           /* packets that others are made from */
    STORAGE = 16384,
};

#define COOKIE UINT64_C(0x0123456789abcdef)

/* How far the runs got; a target that reaches nothing tests nothing. */
static uint64_t total_reduced, total_failed, total_raw, total_completed, total_refused;
static uint64_t total_yielded;
static uint64_t slots_reduced, slots_failed, slots_completed, slots_stale, slots_refused;

static const struct gw_place workers[] = {{.address = OURS_OUTSIDE, .bitmap = 1},
                                          {.address = THEIRS, .bitmap = 2}};

struct fuzz {
    struct gw_test_host host;
    struct gw_node *node;
    struct gw_aggregate *aggregate;
    struct gw_worker *worker;
    struct gw_server *server;
    struct gw_slots *slots;
    struct gw_slot_worker *slot_worker;
    bool is_in_slots; /* the job's tensors are added up there */
    unsigned char *tensors[REDUCTIONS_MAX];
    struct gw_pkt kept[KEPT]; /* copies of the last packets that left */
    uint32_t kept_count;
    gw_time now;
    uint32_t first_seq;
    uint8_t levels;
    uint32_t reductions;
    uint32_t ended;
    struct gw_test_steps steps;
};

static uint8_t take8(struct fuzz *f)
{
    return gw_test_step(&f->steps);
}

/* Values that all fit, that saturate, or that are no numbers. */
static void fill(unsigned char *bytes, size_t size, uint8_t choice)
{
    static const uint32_t patterns[] = {1,          0x3f800000, 0x7fffffff, 0x80000000,
                                        0x7f800000, 0x7fc00000, 0x40000000, 0xffffffff};
    for (size_t i = 0; i + 4 <= size; i += 4)
        memcpy(bytes + i, &patterns[choice & 7], 4);
}

/* Another epoch for the worker, the server or both: after a failure, or in the middle. */
static void begin_epoch(struct fuzz *f, uint8_t how)
{
    bool is_fresh = gw_worker_is_out(f->worker);
    struct gw_worker_place place = {
        .epoch = EPOCH,
        .level = how >> 2 & 1,
        .bitmap = 2,
        .above = {1},
        .first_seq = is_fresh ? f->first_seq : gw_worker_expected(f->worker) - (how >> 4),
        .is_fresh = is_fresh,
    };
    struct gw_server_epoch epoch = {
        .epoch = EPOCH, .levels = f->levels, .first_seq = place.first_seq, .places = workers};
    if (how & 1)
        gw_worker_pause(f->worker);
    if (how & 2)
        gw_server_stop(f->server);
    gw_worker_place(f->worker, &place, f->now);
    gw_server_begin(f->server, &epoch);
}

static void reduce(struct fuzz *f)
{
    uint8_t shape = take8(f), count = take8(f);
    struct gw_tensor tensor = {
        .count = 1 + count % COUNT_MAX,
        .type = shape & 3,
        .op = shape >> 2 & 1 ? GW_OP_AVERAGE : GW_OP_SUM,
        .tag = f->reductions,
    };
    size_t size = tensor.count * gw_dtype_size(tensor.type);
    if (f->reductions == REDUCTIONS_MAX)
        return;
    unsigned char *bytes = malloc(size);
    GW_ASSERT(bytes != NULL);
    memset(bytes, 0, size);
    fill(bytes, size, shape >> 3);
    tensor.in = tensor.out = bytes;
    if (!f->is_in_slots && (gw_worker_is_out(f->worker) || count == 255))
        begin_epoch(f, shape);
    if ((f->is_in_slots ? gw_slot_worker_reduce(f->slot_worker, &tensor, f->now)
                        : gw_worker_reduce(f->worker, &tensor, f->now)) == 0)
        f->tensors[f->reductions++] = bytes;
    else
        free(bytes);
}

/* Whether a gradient has become a result for us. */
static bool is_answered(struct fuzz *f, struct gw_pkt *pkt)
{
    const uint32_t *dsts;
    uint32_t count = gw_slots_gradient(f->slots, pkt, &dsts);
    for (uint32_t i = 0; i < count; i++)
        if (dsts[i] == OURS_OUTSIDE) {
            pkt->dst = OURS;
            return true;
        }
    if (count)
        gw_pkt_release(&f->host.pool, pkt);
    return false;
}

/* To the endpoint. */
static void reach(struct fuzz *f, struct gw_pkt *pkt)
{
    if (pkt->q.kind == GW_PKT_PARAM)
        gw_aggregate_parameter(f->aggregate, pkt, f->now);
    if (pkt->src == OURS)
        pkt->src = OURS_OUTSIDE;
    if (pkt->dst == OURS_OUTSIDE)
        pkt->dst = OURS;
    gw_node_input(f->node, 0, &pkt, 1, f->now);
}

/* Through the switch, and to the endpoint if the packet goes on. */
static void deliver(struct fuzz *f, struct gw_pkt *pkt)
{
    if (pkt->agg_flags & GW_AGG_SLOT) {
        if (pkt->q.kind == GW_PKT_PARAM || is_answered(f, pkt))
            gw_node_input(f->node, 0, &pkt, 1, f->now);
        return;
    }
    if (pkt->q.kind == GW_PKT_GRAD && !gw_aggregate_gradient(f->aggregate, pkt, f->now))
        return;
    struct gw_pkt *beside = gw_aggregate_take_beside(f->aggregate);
    if (beside)
        reach(f, beside);
    reach(f, pkt);
}

/* As a driver does: what is larger than a buffer is no packet. */
static void feed(struct fuzz *f, struct gw_pkt *pkt)
{
    uint32_t payload = gw_codec_payload(pkt);
    uint8_t choice = payload ? take8(f) : 0;
    pkt->buf = payload && payload <= MTU ? gw_buf_claim(&f->host.bufs) : GW_BUF_NONE;
    if (payload && pkt->buf == GW_BUF_NONE) {
        gw_pkt_release(&f->host.pool, pkt);
        return;
    }
    if (payload)
        fill(gw_buf_bytes(&f->host.bufs, pkt->buf), MTU, choice);
    deliver(f, pkt);
}

static struct gw_pkt *claim(struct fuzz *f)
{
    struct gw_pkt *pkt = gw_pkt_claim(&f->host.pool);
    GW_ASSERT(pkt != NULL);
    return pkt;
}

static void input_datagram(struct fuzz *f)
{
    static const struct gw_codec codec = {.cookie = COOKIE};
    struct gw_frame frame = {.tos = take8(f), .entropy = take8(f)};
    struct gw_pkt *pkt = claim(f);
    frame.length = take8(f);
    uint32_t hdr_size = frame.length < GW_WIRE_HDR_MAX ? frame.length : GW_WIRE_HDR_MAX;
    for (uint32_t i = 0; i < hdr_size; i++)
        frame.hdr[i] = take8(f);
    if (gw_codec_decode(&codec, &frame, f->now, pkt) == 0) {
        if (pkt->q.kind == GW_PKT_PARAM)
            pkt->src = OURS_OUTSIDE;
        feed(f, pkt);
    } else {
        pkt->buf = GW_BUF_NONE;
        gw_pkt_release(&f->host.pool, pkt);
    }
}

/* Changes fields of a packet in ways that the codec lets pass. */
static void change_pkt(struct fuzz *f, struct gw_pkt *pkt, uint8_t what)
{
    if (what & 1) {
        pkt->q.kind = take8(f) & 1 ? GW_PKT_PARAM : GW_PKT_GRAD;
        pkt->agg_flags &= ~(GW_AGG_EVEN | GW_AGG_ODD); /* in a parameter they mean other things */
    }
    if (what & 2)
        pkt->agg_flags = take8(f);
    if (what & 4)
        pkt->seq += (uint32_t)(int8_t)take8(f);
    if (what & 8)
        pkt->agg.values = take8(f);
    if (what & 16) {
        uint8_t place = take8(f);
        pkt->agg.level = place & 3;
        pkt->agg.bitmap = place >> 2 == 63 ? UINT32_MAX : place >> 2;
    }
    if (what & 32) {
        pkt->agg.above[0] = take8(f) & 31;
        pkt->agg.above[1] = take8(f) & 31;
    }
    if (what & 64) {
        uint8_t identity = take8(f);
        pkt->epoch += identity & 1;
        pkt->flow += identity >> 1 & 1;
        pkt->q.ecn = identity >> 2 & 3;
        pkt->index = identity >> 4;
        pkt->scale = identity;
    }
    if (what & 128)
        pkt->key ^= take8(f);
}

/* What the other worker, or a server, could say in answer to a packet of ours. */
static void input_packet(struct fuzz *f)
{
    uint8_t which = take8(f), what = take8(f);
    struct gw_pkt *pkt = claim(f);
    *pkt = f->kept[which % KEPT];
    pkt->src = THEIRS;
    pkt->dst = OURS;
    pkt->agg.bitmap = 2;
    change_pkt(f, pkt, what);
    if (pkt->q.kind == GW_PKT_PARAM || pkt->agg.bitmap == 1)
        pkt->src = OURS_OUTSIDE; /* nobody else is believed */
    if (pkt->q.kind == GW_PKT_PARAM && pkt->agg_flags & (GW_AGG_REQUEST | GW_AGG_FAILED))
        pkt->agg.values = 0;
    else if (pkt->agg.values == 0)
        pkt->agg.values = 1;
    feed(f, pkt);
}

static void pass_time(struct fuzz *f)
{
    uint8_t step = take8(f);
    gw_time deadline = gw_node_deadline(f->node);
    if (step & 1 && deadline != GW_TIME_NEVER && gw_time_before(f->now, deadline))
        f->now = deadline;
    else
        f->now += (gw_time)step * step * GW_US;
    gw_node_expire(f->node, f->now);
    gw_aggregate_sweep(f->aggregate, f->now);
    deadline = gw_node_deadline(f->node);
    GW_ASSERT(deadline == GW_TIME_NEVER || gw_time_before(f->now, deadline));
}

/* What leaves survives the way through bytes, to the last of its own. */
static void check_codec(struct fuzz *f, const struct gw_pkt *pkt)
{
    static const struct gw_codec codec = {.cookie = COOKIE};
    struct gw_pkt decoded = {.q.next = pkt->q.next};
    struct gw_frame frame;
    gw_codec_encode(&codec, pkt, &frame);
    GW_ASSERT(gw_codec_decode(&codec, &frame, f->now, &decoded) == 0);
    decoded.q.size = pkt->q.size;
    decoded.q.rank = pkt->q.rank;
    decoded.buf = pkt->buf;
    GW_ASSERT(memcmp(&decoded, pkt, sizeof(decoded)) == 0);
}

/*
 * Lets at most `max` packets leave; those that `lost` does not name come back if they are for us.
 * True when nothing more wants to leave.
 */
static bool output(struct fuzz *f, uint32_t max, uint32_t lost)
{
    struct gw_pkt *pkts[BATCH];
    uint32_t result;
    do {
        uint32_t room = max < BATCH ? max : BATCH;
        f->node->ready_count = 0;
        result = gw_node_output(f->node, 0, pkts, room, f->now);
        uint32_t count = result & ~GW_OUTPUT_MORE;
        GW_ASSERT(count <= room);
        max -= count;
        for (uint32_t i = 0; i < count; i++) {
            check_codec(f, pkts[i]);
            f->kept[f->kept_count++ % KEPT] = *pkts[i];
            if (pkts[i]->dst == OURS_OUTSIDE && !(lost >> i & 1))
                deliver(f, pkts[i]);
            else
                gw_pkt_release(&f->host.pool, pkts[i]);
        }
    } while (max && result & GW_OUTPUT_MORE);
    return !(result & GW_OUTPUT_MORE);
}

static void poll_events(struct fuzz *f)
{
    struct gw_event event;
    while (gw_endpoint_poll(f->host.endpoint, &event, 1)) {
        GW_ASSERT(event.kind == GW_EVENT_REDUCED || event.kind == GW_EVENT_FAILED);
        GW_ASSERT(event.tag < f->reductions && f->tensors[event.tag] != NULL);
        *(f->is_in_slots ? &slots_reduced : &total_reduced) += event.kind == GW_EVENT_REDUCED;
        *(f->is_in_slots ? &slots_failed : &total_failed) += event.kind == GW_EVENT_FAILED;
        free(f->tensors[event.tag]); /* nobody may touch it any more */
        f->tensors[event.tag] = NULL;
        f->ended++;
    }
}

static void output_some(struct fuzz *f)
{
    uint32_t max = 1 + take8(f) % BATCH;
    output(f, max, take8(f));
    poll_events(f);
}

/* Room for one of the job's parts, which clear it themselves. */
static void *take_room(size_t size)
{
    static _Alignas(64) unsigned char storage[5][STORAGE];
    static uint32_t next;
    GW_ASSERT(size <= STORAGE);
    return storage[next++ % 5];
}

/* The stage, which knows both jobs if it adds up. */
static void open_stage(struct fuzz *f, uint32_t rules)
{
    static const uint32_t members[] = {OURS_OUTSIDE, THEIRS};
    struct gw_aggregate_cfg cfg = {.aggregators = AGGREGATORS,
                                   .jobs_max = 2,
                                   .members_max = 2 * GW_COUNT_OF(members),
                                   .share = rules >> 8 & 1 ? 0 : 1,
                                   .leak = GW_MS,
                                   .reclaim = (enum gw_agg_reclaim)(rules & 1),
                                   .kernels = gw_kernels_best(gw_cpu_features()),
                                   .pool = &f->host.pool};
    struct gw_aggregate_job job = {.job = JOB,
                                   .epoch = EPOCH,
                                   .fan_in = GW_COUNT_OF(members),
                                   .partials = (enum gw_agg_partials)(rules >> 1 & 1),
                                   .member_count = GW_COUNT_OF(members),
                                   .members = members};
    f->aggregate = gw_aggregate_init(take_room(gw_aggregate_size(&cfg)), &cfg);
    if (f->levels == 0)
        return;
    GW_ASSERT(gw_aggregate_install(f->aggregate, &job) == 0);
    job.job = OTHER_JOB;
    GW_ASSERT(gw_aggregate_install(f->aggregate, &job) == 0);
}

static void open_job(struct fuzz *f, uint8_t shape, uint32_t first_seq)
{
    const struct gw_kernels *kernels = gw_kernels_best(gw_cpu_features());
    /* Ours, or any that the paper has in their place. */
    uint32_t rules = first_seq & 1 ? (uint32_t)gw_mix64(first_seq) : 0;
    struct gw_worker_cfg worker = {.job = JOB,
                                   .epoch = EPOCH,
                                   .world = GW_COUNT_OF(workers),
                                   .server = OURS_OUTSIDE,
                                   .bitmap = 1,
                                   .values = VALUES,
                                   .window_max = WINDOW,
                                   .window_initial = 1 + shape % WINDOW,
                                   .aggregators = AGGREGATORS,
                                   .hashing = (enum gw_agg_hashing)(rules >> 2 & 1),
                                   .halving = (enum gw_agg_halving)(rules >> 3 & 1),
                                   .overtaking = (enum gw_agg_overtaking)(rules >> 4 & 1),
                                   .tensors_max = TENSORS_MAX,
                                   .timeout = 50 * GW_US,
                                   .stall = shape & 32 ? 10 * GW_MS : 0,
                                   .congestion_control = shape & 64,
                                   .keeps_results = shape & 1,
                                   .offers_exponents = shape & 2,
                                   .proactive = shape & 2,
                                   .scale_exponent = rules >> 5 & 1 ? GW_SCALE_DECIMAL : 20,
                                   .first_seq = first_seq,
                                   .kernels = kernels};
    f->levels = shape >> 4 & 1;
    struct gw_server_cfg server = {.job = JOB,
                                   .world = GW_COUNT_OF(workers),
                                   .levels = f->levels,
                                   .values = VALUES,
                                   .window_max = WINDOW,
                                   .aggregators = AGGREGATORS,
                                   .raw_max = 2,
                                   .retry = 20 * GW_US,
                                   .quiet = rules >> 6 & 1 ? 0 : 30 * GW_US,
                                   .hashing = worker.hashing,
                                   .remap = (enum gw_agg_remap)(rules >> 7 & 1),
                                   .scale_exponent = worker.scale_exponent,
                                   .agrees_exponents = shape & 128,
                                   .proactive = shape & 2,
                                   .kernels = kernels};
    open_stage(f, rules);
    GW_ASSERT(gw_worker_init(&f->worker, take_room(gw_worker_size(&worker)), &worker,
                             f->host.endpoint) == 0);
    GW_ASSERT(gw_server_init(&f->server, take_room(gw_server_size(&server)), &server,
                             f->host.endpoint) == 0);
    struct gw_server_epoch epoch = {
        .epoch = EPOCH, .levels = server.levels, .first_seq = first_seq, .places = workers};
    gw_server_begin(f->server, &epoch);
}

static void open_slots(struct fuzz *f, uint8_t shape, uint32_t first_seq)
{
    static const uint32_t members[] = {OURS_OUTSIDE, THEIRS};
    const struct gw_kernels *kernels = gw_kernels_best(gw_cpu_features());
    struct gw_slots_cfg stage = {
        .slots = SLOTS, .jobs_max = 1, .kernels = kernels, .pool = &f->host.pool};
    struct gw_slots_job job = {.job = JOB,
                               .epoch = EPOCH,
                               .world = GW_COUNT_OF(members),
                               .count = SLOTS,
                               .members = members};
    struct gw_slot_worker_cfg worker = {.job = JOB,
                                        .epoch = EPOCH,
                                        .world = GW_COUNT_OF(members),
                                        .peer = OURS_OUTSIDE,
                                        .slots = SLOTS,
                                        .values = VALUES,
                                        .tensors_max = TENSORS_MAX,
                                        .timeout = 50 * GW_US,
                                        .stall = shape & 32 ? 10 * GW_MS : 0,
                                        .scale_exponent = 20,
                                        .first_seq = first_seq,
                                        .kernels = kernels};
    f->is_in_slots = shape & 128;
    f->slots = gw_slots_init(take_room(gw_slots_size(&stage)), &stage);
    GW_ASSERT(gw_slots_install(f->slots, &job) == 0);
    GW_ASSERT(gw_slot_worker_init(&f->slot_worker, take_room(gw_slot_worker_size(&worker)), &worker,
                                  f->host.endpoint) == 0);
}

static void fuzz_open(struct fuzz *f)
{
    struct gw_endpoint_cfg cfg = gw_test_host_cfg(OURS, MTU);
    cfg.apps_max = 3;
    cfg.app_events_max = 2 * TENSORS_MAX;
    f->now = (gw_time)0 - GW_MS; /* the clock wraps soon */
    gw_test_host_open(&f->host, &cfg, PKTS);
    f->node = gw_endpoint_node(f->host.endpoint);
    uint8_t shape = take8(f);
    uint32_t first_seq = f->first_seq = (uint32_t)(int8_t)take8(f);
    open_job(f, shape, first_seq);
    open_slots(f, shape, first_seq);
    for (uint32_t i = 0; i < KEPT; i++)
        f->kept[i] =
            (struct gw_pkt){.q.kind = GW_PKT_GRAD, .flow = JOB, .epoch = EPOCH, .buf = GW_BUF_NONE};
}

static void fuzz_close(struct fuzz *f)
{
    poll_events(f);
    GW_ASSERT(output(f, OUTPUTS_MAX, UINT32_MAX));
    total_raw += gw_server_stats(f->server)->overflowed;
    total_refused += gw_server_stats(f->server)->stale + gw_worker_stats(f->worker)->stale;
    total_completed += gw_aggregate_stats(f->aggregate)->completed;
    total_yielded += gw_aggregate_stats(f->aggregate)->yielded;
    slots_completed += gw_slots_stats(f->slots)->completed;
    slots_stale += gw_slots_stats(f->slots)->stale;
    slots_refused +=
        gw_slots_stats(f->slots)->malformed + gw_slot_worker_stats(f->slot_worker)->stale;
    gw_worker_fini(f->worker);
    gw_slot_worker_fini(f->slot_worker);
    gw_server_fini(f->server);
    gw_aggregate_remove(f->aggregate, JOB);
    gw_aggregate_remove(f->aggregate, OTHER_JOB);
    gw_aggregate_fini(f->aggregate);
    gw_slots_remove(f->slots, JOB);
    gw_test_host_close(&f->host); /* checks that every packet and buffer is back */
    for (uint32_t i = 0; i < f->reductions; i++)
        free(f->tensors[i]);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    struct fuzz f = {.steps = {data, size}};
    fuzz_open(&f);
    reduce(&f);
    while (f.steps.left) {
        switch (take8(&f) % 8) {
        case 0:
            input_datagram(&f);
            break;
        case 1:
        case 2:
        case 3:
            input_packet(&f);
            break;
        case 4:
            pass_time(&f);
            break;
        case 5:
        case 6:
            output_some(&f);
            break;
        default:
            reduce(&f);
        }
    }
    fuzz_close(&f);
    return 0;
}

enum {
    ROUNDS = 100000,
};

static void check_reached(void)
{
    print_message(
        "reduced %llu, failed %llu, raw %llu, added up in the switch %llu, taken over %llu, "
        "refused %llu\n",
        (unsigned long long)total_reduced, (unsigned long long)total_failed,
        (unsigned long long)total_raw, (unsigned long long)total_completed,
        (unsigned long long)total_yielded, (unsigned long long)total_refused);
    print_message("in slots: reduced %llu, failed %llu, added up %llu, stale %llu, refused %llu\n",
                  (unsigned long long)slots_reduced, (unsigned long long)slots_failed,
                  (unsigned long long)slots_completed, (unsigned long long)slots_stale,
                  (unsigned long long)slots_refused);
    assert_true(total_reduced > ROUNDS / 12 && total_completed > ROUNDS / 10);
    assert_true(total_failed > ROUNDS / 100 && total_raw > ROUNDS / 100);
    assert_true(total_refused > ROUNDS / 10 && total_yielded > ROUNDS / 100);
    assert_true(slots_reduced > ROUNDS / 20 && slots_completed > ROUNDS / 10);
    assert_true(slots_failed > ROUNDS / 100 && slots_stale > ROUNDS / 100);
    assert_true(slots_refused > ROUNDS / 100);
}

const struct gw_test_target gw_test_target = {
    .corpus = "aggregate",
    .seed = 3,
    .rounds = ROUNDS,
    .check_reached = check_reached,
};
