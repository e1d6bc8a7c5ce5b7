/*
 * Micro benchmarks of an all-reduce through a switch: four workers, a switch that learns addresses,
 * and the server behind it, packets encoded and decoded on every link but the server's, as on the
 * overlay. An operation is one packet of a worker, and its share of what that causes: the sum, the
 * result, and the result's way back to the worker.
 */
#include "micro.h"

#include "base/cpu.h"
#include "core/switch/aggregate.h"
#include "core/codec.h"
#include "core/aggregation/server.h"
#include "core/switch/switch.h"
#include "core/aggregation/worker.h"

enum {
    WORKERS = 4,
    PORTS = WORKERS + 1, /* the last one is the server's */
    FIRST = 1,           /* address of the first worker; 0 is nobody's where switches learn */
    SERVER = 100,        /* address */
    JOB = 1,
    EPOCH = 1,
    FRAGMENTS = 64, /* of a tensor */
    WINDOW = 64,
    AGGREGATORS = 256,
    TRAIN = 16,
    PKTS = 4096,
    VALUES_MAX = 352,
};

struct reduce_bench {
    struct gw_pkt_pool pool;
    struct gw_buf_pool bufs;
    struct gw_codec codec;
    struct gw_node *hosts[PORTS];
    struct gw_endpoint *endpoints[PORTS];
    struct gw_worker *workers[WORKERS];
    struct gw_node *sw;
    uint32_t values; /* of a fragment */
    gw_time now;
    float in[FRAGMENTS * VALUES_MAX];
    float out[WORKERS][FRAGMENTS * VALUES_MAX];
};

/* What a link does to a train: bytes and back. The payload stays where it is. */
static void cross(struct reduce_bench *b, struct gw_pkt **pkts, uint32_t count)
{
    for (uint32_t i = 0; i < count; i++) {
        struct gw_frame frame;
        uint32_t buf = pkts[i]->buf;
        gw_codec_encode(&b->codec, pkts[i], &frame);
        int error = gw_codec_decode(&b->codec, &frame, b->now, pkts[i]);
        GW_ASSERT(error == 0);
        pkts[i]->buf = buf;
    }
}

/* Pulls a train of `from` and gives it to `to`; true: there is more. */
static bool carry(struct reduce_bench *b, struct gw_node *from, uint16_t out, struct gw_node *to,
                  uint16_t in)
{
    struct gw_pkt *pkts[TRAIN];
    uint32_t answer = gw_node_output(from, out, pkts, TRAIN, b->now);
    uint32_t count = answer & ~GW_OUTPUT_MORE;
    if (in != WORKERS && out != WORKERS)
        cross(b, pkts, count);
    if (count)
        gw_node_input(to, in, pkts, count, b->now);
    return answer & GW_OUTPUT_MORE;
}

/* Lets every ready port send until nothing moves. */
static void settle(struct reduce_bench *b)
{
    for (bool moves = true; moves;) {
        moves = false;
        for (uint16_t i = 0; i < PORTS; i++) {
            bool more = b->hosts[i]->ready_count;
            b->hosts[i]->ready_count = 0;
            moves |= more;
            while (more)
                more = carry(b, b->hosts[i], 0, b->sw, i);
        }
        uint16_t count = b->sw->ready_count;
        uint16_t ready[PORTS];
        for (uint16_t i = 0; i < count; i++)
            ready[i] = b->sw->ready[i];
        b->sw->ready_count = 0;
        moves |= count;
        for (uint16_t i = 0; i < count; i++)
            while (carry(b, b->sw, ready[i], b->hosts[ready[i]], 0))
                continue;
    }
}

static void reduce_run(void *state, uint64_t count)
{
    struct reduce_bench *b = state;
    for (uint64_t done = 0; done < count; done += WORKERS * FRAGMENTS) {
        for (uint32_t i = 0; i < WORKERS; i++) {
            struct gw_tensor tensor = {.in = b->in,
                                       .out = b->out[i],
                                       .count = FRAGMENTS * b->values,
                                       .type = GW_DTYPE_F32};
            int error = gw_worker_reduce(b->workers[i], &tensor, b->now);
            GW_ASSERT(error == 0);
        }
        settle(b);
        for (uint32_t i = 0; i < WORKERS; i++) {
            struct gw_event event;
            uint32_t events = gw_endpoint_poll(b->endpoints[i], &event, 1);
            GW_ASSERT(events == 1 && event.kind == GW_EVENT_REDUCED);
        }
        b->now += GW_US;
    }
}

static void open_endpoint(struct reduce_bench *b, uint32_t at, uint32_t address)
{
    struct gw_endpoint_cfg cfg = {
        .address = address,
        .port_count = 1,
        .tx_flows_max = 1,
        .rx_flows_max = 1,
        .apps_max = 1,
        .app_events_max = 4,
        .span_max = 64,
        .mtu = GW_BENCH_MTU,
        .hdr = GW_BENCH_HDR,
        .ack_every = 1,
        .train = TRAIN,
        .seed = address,
        .pool = &b->pool,
    };
    b->endpoints[at] = gw_endpoint_init(gw_bench_take(gw_endpoint_size(&cfg)), &cfg);
    b->hosts[at] = gw_endpoint_node(b->endpoints[at]);
}

static void open_worker(struct reduce_bench *b, uint32_t rank)
{
    struct gw_worker_cfg cfg = {
        .job = JOB,
        .epoch = EPOCH,
        .world = WORKERS,
        .server = SERVER,
        .bitmap = UINT32_C(1) << rank,
        .values = b->values,
        .window_max = WINDOW,
        .window_initial = WINDOW,
        .aggregators = AGGREGATORS,
        .indexing = GW_AGG_INDEX_HASH,
        .tensors_max = 2,
        .timeout = GW_S,
        .congestion_control = true,
        .keeps_results = true,
        .scale_exponent = 20,
        .kernels = gw_kernels_best(gw_cpu_features()),
    };
    open_endpoint(b, rank, FIRST + rank);
    int error = gw_worker_init(&b->workers[rank], gw_bench_take(gw_worker_size(&cfg)), &cfg,
                               b->endpoints[rank]);
    GW_ASSERT(error == 0);
}

static void open_server(struct reduce_bench *b)
{
    struct gw_server_cfg cfg = {
        .job = JOB,
        .world = WORKERS,
        .levels = 1,
        .values = b->values,
        .window_max = WINDOW,
        .aggregators = AGGREGATORS,
        .indexing = GW_AGG_INDEX_HASH,
        .raw_max = 2,
        .retry = GW_S,
        .quiet = GW_S,
        .scale_exponent = 20,
        .kernels = gw_kernels_best(gw_cpu_features()),
    };
    struct gw_place places[WORKERS];
    for (uint32_t i = 0; i < WORKERS; i++)
        places[i] = (struct gw_place){.address = FIRST + i, .bitmap = UINT32_C(1) << i};
    struct gw_server_epoch epoch = {.epoch = EPOCH, .levels = 1, .places = places};
    struct gw_server *server;
    open_endpoint(b, WORKERS, SERVER);
    int error =
        gw_server_init(&server, gw_bench_take(gw_server_size(&cfg)), &cfg, b->endpoints[WORKERS]);
    GW_ASSERT(error == 0);
    gw_server_begin(server, &epoch);
}

static struct gw_aggregate *open_aggregate(struct reduce_bench *b)
{
    static const uint32_t members[WORKERS] = {FIRST, FIRST + 1, FIRST + 2, FIRST + 3};
    struct gw_aggregate_job job = {
        .job = JOB,
        .epoch = EPOCH,
        .fan_in = WORKERS,
        .member_count = WORKERS,
        .members = members,
    };
    return gw_bench_aggregate(&b->pool, AGGREGATORS, &job);
}

static void open_switch(struct reduce_bench *b)
{
    const struct gw_algo *fifo = gw_registry_find(&gw_qdisc_registry, "fifo");
    union gw_algo_cfg *qdisc_cfg = gw_bench_take(sizeof(*qdisc_cfg));
    uint32_t capacity[PORTS];
    gw_algo_defaults(fifo, qdisc_cfg);
    for (uint16_t i = 0; i < PORTS; i++)
        capacity[i] = UINT32_MAX / 4;
    struct gw_switch_cfg cfg = {
        .port_count = PORTS,
        .qdisc = (const struct gw_qdisc_ops *)fifo,
        .qdisc_cfg = qdisc_cfg,
        .capacity = capacity,
        .trim_size = GW_BENCH_HDR,
        .learned_max = 2 * PORTS,
        .learned_idle = GW_S,
        .uplink = GW_PORT_NONE,
        .train = TRAIN,
        .aggregate = open_aggregate(b),
        .address = SERVER + 1,
        .seed = 4,
        .pool = &b->pool,
    };
    struct gw_switch *sw = gw_switch_init(gw_bench_take(gw_switch_size(&cfg)), &cfg);
    b->sw = gw_switch_node(sw);
    for (uint16_t i = 0; i < PORTS; i++) {
        int error = gw_switch_open_port(sw, i, i == WORKERS ? SERVER : FIRST + i, true, b->now);
        GW_ASSERT(error == 0);
    }
}

static void add_reduce(struct gw_bench_suite *suite, const char *name, uint32_t values)
{
    struct reduce_bench *b = gw_bench_take(sizeof(*b));
    b->values = values;
    b->codec.cookie = 1;
    gw_buf_pool_init(&b->bufs, gw_bench_take(gw_buf_pool_size(PKTS, 4 * values)), PKTS, 4 * values);
    gw_pkt_pool_init(&b->pool, gw_bench_take(PKTS * sizeof(struct gw_pkt)), 0, PKTS, &b->bufs);
    for (uint32_t rank = 0; rank < WORKERS; rank++)
        open_worker(b, rank);
    open_server(b);
    open_switch(b);
    gw_bench_add(suite, name, reduce_run, b);
}

void gw_bench_add_reduce(struct gw_bench_suite *suite)
{
    add_reduce(suite, "all-reduce, packet of 16 values", 16);
    add_reduce(suite, "all-reduce, packet of 352 values", VALUES_MAX);
}
