/*
 * Fuzz target: a communicator whose fellow ranks, registrar and server, who hold the key, say
 * anything at any time, while it has calls of all kinds in work.
 *
 * The input is a program of small steps. Properties: no crash, no assertion, no memory but that of
 * calls in work is read or written (the sanitizer sees it); what it takes from its allocator is
 * bounded and given back; its deadline moves; every call ends once, or with the job; and when the
 * job is given up, all comes to an end.
 */
#include "fuzz/rank.h"
#include "fuzz/replay.h"
#include "support.h"

#include "base/align.h"

enum {
    WORLD = GW_TEST_WORLD,
    OWN = 1,     /* rank; ranks have the addresses 1 to WORLD */
    SERVER = 50, /* address, also of the registrar */
    JOB = 7,
    INCARNATION = 9,
    MTU = 256,
    PKTS = 256,
    BATCH = 8,
    COUNT_MAX = 200,
    TURNS_MAX = 10000,
};

/* What a peer can make it take: its workers, large pushes, and what is on its way. */
#define MEMORY_MAX ((size_t)8 << 20)
#define STALL      (200 * GW_US)

static struct {
    uint32_t open, failed, broken, left, done, refused, joined;
} reached;

struct call {
    bool is_busy;
    void *in, *out;
};

struct fuzz {
    struct gw_test_rank own;
    struct gw_test_steps steps;
    gw_time now;
    struct call calls[GW_COMMUNICATOR_CALLS_MAX];
    uint32_t in_work;
    struct gw_test_budget budget;
    bool is_over;
};

static void open_fuzz(struct fuzz *f, const struct gw_transport *transport)
{
    f->budget.limit = MEMORY_MAX;
    struct gw_endpoint_cfg endpoint = gw_test_host_cfg(OWN + 1, MTU);
    endpoint.span_max = GW_SPAN_MIN; /* no message is longer, and memory is made for each run */
    struct gw_communicator_cfg cfg = {
        .address = OWN + 1,
        .job = JOB,
        .rank = OWN,
        .world = WORLD,
        .via = (enum gw_via)(gw_test_step(&f->steps) % GW_VIAS),
        .server_count = 1,
        .whole = 64,
        .transport = transport,
        .mtu = MTU,
        .segment = 64,
        .flows = 2,
        .incarnation = INCARNATION,
        .worker = {.timeout = 10 * GW_US, .stall = STALL, .keeps_results = true},
        .retry = 10 * GW_US,
        .beat = 50 * GW_US,
        .stall = STALL,
        .kernels = gw_kernels_best(0),
        .allocator = gw_test_budget_allocator(&f->budget),
    };
    gw_test_rank_open(&f->own, &cfg, &endpoint, PKTS, f->now);
}

static void end_call(struct fuzz *f, struct call *call)
{
    free(call->in);
    free(call->out);
    *call = (struct call){.is_busy = false};
    f->in_work--;
}

static void end_all(struct fuzz *f)
{
    for (uint32_t i = 0; i < GW_COMMUNICATOR_CALLS_MAX; i++)
        if (f->calls[i].is_busy)
            end_call(f, &f->calls[i]);
    f->is_over = true;
}

static void take_event(struct fuzz *f, const struct gw_communicator_event *event)
{
    GW_ASSERT(!f->is_over);
    switch (event->kind) {
    case GW_COMMUNICATOR_OPEN:
        reached.open++;
        break;
    case GW_COMMUNICATOR_WANTS:
        GW_ASSERT(event->rank < WORLD && event->rank != OWN);
        break;
    case GW_COMMUNICATOR_DONE:
    case GW_COMMUNICATOR_REFUSED:
        GW_ASSERT(event->call >= 1 && event->call <= GW_COMMUNICATOR_CALLS_MAX);
        GW_ASSERT(f->calls[event->call - 1].is_busy);
        reached.done += event->kind == GW_COMMUNICATOR_DONE;
        reached.refused += event->kind == GW_COMMUNICATOR_REFUSED;
        end_call(f, &f->calls[event->call - 1]);
        break;
    case GW_COMMUNICATOR_FAILED:
        GW_ASSERT(event->reason && event->reason < GW_JOB_REASONS);
        GW_ASSERT(event->about <= WORLD && event->server <= 1);
        reached.failed++;
        reached.broken += event->reason == GW_JOB_BROKEN;
        end_all(f);
        break;
    case GW_COMMUNICATOR_LEFT:
        GW_ASSERT(f->in_work == 0);
        reached.left++;
        end_all(f);
        break;
    }
}

static void turn(struct fuzz *f)
{
    struct gw_communicator_event said;
    struct gw_event event;
    gw_node_expire(gw_endpoint_node(f->own.host.endpoint), f->now);
    while (gw_endpoint_poll(f->own.host.endpoint, &event, 1)) {
        reached.joined += event.kind == GW_EVENT_JOINED;
        gw_communicator_event(f->own.comm, &event, f->now);
    }
    gw_communicator_expire(f->own.comm, f->now);
    for (uint32_t i = 0; gw_communicator_poll(f->own.comm, &said, f->now); i++) {
        GW_ASSERT(i < TURNS_MAX);
        take_event(f, &said);
    }
    gw_time deadline = gw_communicator_deadline(f->own.comm);
    GW_ASSERT(deadline == GW_TIME_NEVER || gw_time_before(f->now, deadline));
}

/* The table, of which steps may change a byte. */
static void say_table(struct fuzz *f)
{
    uint8_t bytes[GW_TEST_TABLE];
    uint8_t at = gw_test_step(&f->steps), with = gw_test_step(&f->steps);
    gw_test_rank_table(bytes);
    if (at < sizeof(bytes))
        bytes[at] = with;
    struct gw_test_steps table = {bytes, sizeof(bytes)};
    gw_test_deliver(f->own.host.endpoint, SERVER, GW_MESH_TAG_TABLE, sizeof(bytes), &table);
}

/* Something that is awaited: the `at`th of all memory that is posted. */
static void say_awaited(struct fuzz *f, uint8_t at)
{
    struct gw_endpoint *ep = f->own.host.endpoint;
    uint8_t size = gw_test_step(&f->steps);
    for (uint32_t i = 0; i < ep->cfg.expect_max; i++) {
        const struct gw_expect *posted = &ep->expectations[i];
        if (!posted->data || at-- > 0)
            continue;
        gw_test_deliver(ep, posted->peer, posted->tag, size ? size : posted->bytes, &f->steps);
        return;
    }
}

/* Anything else that a peer may say. */
static void say(struct fuzz *f, uint8_t who)
{
    static const uint32_t tags[] = {GW_MESH_TAG_FAILURE, GW_MESH_TAG_BYE,   GW_MESH_TAG_TABLE,
                                    GW_MESH_TAG_MESSAGE, GW_MESH_TAG_STORE, 0};
    uint8_t what = gw_test_step(&f->steps);
    uint32_t tag = tags[what % GW_COUNT_OF(tags)];
    if (tag < GW_MESH_TAG_TABLE)
        tag += what / 64u + ((uint32_t)gw_test_step(&f->steps) << GW_MESH_SEGMENT_BITS) / 8;
    gw_test_deliver(f->own.host.endpoint, who % 4 == 3 ? SERVER : 1 + who % 4, tag,
                    1 + gw_test_step(&f->steps), &f->steps);
}

/* A packet of the server, for one of the two shards. */
static struct gw_pkt *packet(struct fuzz *f, uint8_t who, enum gw_pkt_kind kind)
{
    struct gw_pkt *pkt = gw_pkt_claim(&f->own.host.pool);
    if (!pkt)
        return NULL;
    *pkt = (struct gw_pkt){
        .q = {.size = 60, .kind = (uint8_t)kind, .class = GW_CLASS_CONTROL},
        .src = SERVER,
        .dst = OWN + 1,
        .flow = who & 1 ? JOB : gw_job_shard_direct(JOB),
        .epoch = 1 + (who >> 6 == 3),
        .buf = GW_BUF_NONE,
    };
    return pkt;
}

static void say_job(struct fuzz *f, uint8_t who)
{
    struct gw_pkt *pkt = packet(f, who, GW_PKT_JOB);
    uint8_t what = gw_test_step(&f->steps), more = gw_test_step(&f->steps);
    if (!pkt)
        return;
    const struct gw_job_terms terms = {
        .rank = OWN,
        .world = WORLD,
        .values = 4,
        .aggregators = 15,
        .window = 7,
    };
    pkt->agg_flags = what % GW_JOB_OPS;
    pkt->key = INCARNATION;
    if (pkt->agg_flags == GW_JOB_WELCOME)
        gw_job_terms_pack(&terms, pkt->job.word);
    else
        pkt->index = more % GW_JOB_REASONS;
    pkt->scale = (uint8_t)GW_SCALE_EXPONENT;
    if (what >> 6 == 3)
        pkt->job.word[more % 3] ^= 1u << more / 8;
    gw_node_input(gw_endpoint_node(f->own.host.endpoint), 0, &pkt, 1, f->now);
}

/* A result, or what passes for one. */
static void say_result(struct fuzz *f, uint8_t who)
{
    static const uint8_t flags[] = {0,
                                    GW_AGG_UNICAST,
                                    GW_AGG_REQUEST,
                                    GW_AGG_RAW,
                                    GW_AGG_FAILED,
                                    GW_AGG_COLLISION,
                                    GW_AGG_REQUEST | GW_AGG_RAW,
                                    GW_AGG_ECN};
    struct gw_pkt *pkt = packet(f, who, GW_PKT_PARAM);
    uint8_t what = gw_test_step(&f->steps);
    if (!pkt)
        return;
    pkt->q.class = 1;
    pkt->agg_flags = flags[what % 8];
    pkt->seq = what / 8 % 16;
    pkt->agg.values = 1 + (what >> 7) * 3;
    pkt->key = gw_test_step(&f->steps);
    pkt->buf = gw_buf_claim(&f->own.host.bufs);
    if (pkt->buf != GW_BUF_NONE)
        memset(gw_buf_bytes(&f->own.host.bufs, pkt->buf), gw_test_step(&f->steps), MTU);
    gw_node_input(gw_endpoint_node(f->own.host.endpoint), 0, &pkt, 1, f->now);
}

static void start_call(struct fuzz *f, uint8_t who)
{
    uint8_t what = gw_test_step(&f->steps), count = gw_test_step(&f->steps);
    uint32_t number = 0;
    while (number < GW_COMMUNICATOR_CALLS_MAX && f->calls[number].is_busy)
        number++;
    if (number == GW_COMMUNICATOR_CALLS_MAX || f->is_over)
        return;
    struct call *call = &f->calls[number];
    struct gw_call said = {
        .kind = (enum gw_call_kind)(who % GW_CALL_KINDS),
        .via = (enum gw_via)(what % (GW_VIAS + 1)),
        .type = (enum gw_dtype)(what / 4 % GW_DTYPES),
        .op = (enum gw_op)(what / 32 % GW_OPS),
        .number = number + 1,
        .count = 1 + count % COUNT_MAX,
        .peer = who / 16 % WORLD,
        .tag = number,
        .key = who / 64,
    };
    size_t bytes = WORLD * said.count * sizeof(uint64_t);
    said.in = call->in = calloc(1, bytes);
    said.out = call->out = calloc(1, bytes);
    assert_true(call->in && call->out);
    call->is_busy = true;
    f->in_work++;
    if (gw_communicator_call(f->own.comm, &said, f->now) != GW_OK)
        end_call(f, call);
}

static void change_ways(struct fuzz *f, uint8_t who)
{
    const struct gw_path path = {
        .brtt = GW_US, .brtt_max = GW_US, .rate_bps = 1000000000, .bdp = 10000, .mtu = MTU};
    struct gw_mesh *mesh = gw_communicator_mesh(f->own.comm);
    uint32_t rank = who & 4 ? 0 : 2;
    if (who % 4 == 0)
        gw_communicator_set_server(f->own.comm, 0, SERVER + (who == 252), &path, f->now);
    else if (who % 4 == 1)
        gw_mesh_registrar_down(mesh, f->now);
    else if (who % 4 == 2)
        gw_mesh_way_up(mesh, rank, 1 + rank + (who > 250), f->now);
    else
        gw_mesh_way_down(mesh, rank, who > 250, f->now);
}

static void give_up(struct fuzz *f, uint8_t who)
{
    if (who < 8)
        gw_communicator_abort(f->own.comm, f->now);
    else if (f->in_work == 0 && who > 128)
        gw_communicator_leave(f->own.comm, f->now);
}

/* What it wants to send is lost. */
static void output(struct fuzz *f)
{
    gw_test_rank_output(&f->own, BATCH, f->now);
}

static void step(struct fuzz *f)
{
    uint8_t what = gw_test_step(&f->steps), who = gw_test_step(&f->steps);
    switch (what % 16) {
    case 0:
        say_table(f);
        break;
    case 1:
    case 2:
    case 3:
        say_awaited(f, who);
        break;
    case 4:
        say(f, who);
        break;
    case 5:
        say_job(f, who);
        break;
    case 6:
        say_result(f, who);
        break;
    case 7:
    case 8:
    case 9:
        start_call(f, who);
        break;
    case 10:
        change_ways(f, who);
        break;
    case 11:
        give_up(f, who);
        break;
    case 12:
        output(f);
        f->now += who * GW_US / 4;
        break;
    default:
        gw_test_end_flow(f->own.host.endpoint, who % 16, who < 240, f->now);
    }
    f->now += GW_US / 4;
    turn(f);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static struct gw_transport transport;
    struct fuzz *f = calloc(1, sizeof(*f));
    assert_non_null(f);
    f->steps = (struct gw_test_steps){data, size};
    if (!transport.lb)
        transport = gw_test_transport("smartt", "spray", "timeout");
    open_fuzz(f, &transport);
    while (f->steps.left)
        step(f);
    gw_communicator_abort(f->own.comm, f->now);
    turn(f);
    GW_ASSERT(f->is_over && f->in_work == 0);
    for (uint32_t i = 0; gw_communicator_is_busy(f->own.comm); i++) {
        GW_ASSERT(i < TURNS_MAX);
        gw_test_end_flow(f->own.host.endpoint, 0, true, f->now += GW_US);
        turn(f);
    }
    gw_test_rank_close(&f->own, &f->budget);
    free(f);
    return 0;
}

/* Each makes an endpoint: with a sanitizer, of pages that are fresh. */
enum {
    ROUNDS = 50000 / GW_TEST_EVERY(4),
};

static void check_reached(void)
{
    print_message("open %u, joined %u, done %u, refused %u, failed %u, broken %u, left %u\n",
                  reached.open, reached.joined, reached.done, reached.refused, reached.failed,
                  reached.broken, reached.left);
    assert_true(reached.open > ROUNDS / 50 && reached.joined > ROUNDS / 50);
    assert_true(reached.done > ROUNDS / 50 && reached.refused > ROUNDS / 1000);
    assert_true(reached.failed > ROUNDS / 2 && reached.broken > ROUNDS / 100);
    assert_true(reached.left > ROUNDS / 1000);
}

const struct gw_test_target gw_test_target = {
    .corpus = "communicator",
    .seed = 17,
    .rounds = ROUNDS,
    .check_reached = check_reached,
};
