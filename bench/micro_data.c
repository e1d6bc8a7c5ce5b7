/*
 * Micro benchmarks of what nodes and datapaths are built of: codec, map, heap.
 */
#include "micro.h"

#include "base/heap.h"
#include "base/map.h"
#include "base/prng.h"
#include "core/codec.h"

enum {
    MAP_ENTRIES = 4096,
    HEAP_IDS = 1024,
};

/* Wire: a packet to bytes and back. */

struct codec_bench {
    struct gw_pkt pkts[GW_BENCH_BATCH];
    struct gw_codec codec;
};

static void codec_run(void *state, uint64_t count)
{
    struct codec_bench *b = state;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < count; i++) {
        struct gw_frame frame;
        struct gw_pkt pkt;
        gw_codec_encode(&b->codec, &b->pkts[i % GW_BENCH_BATCH], &frame);
        int error = gw_codec_decode(&b->codec, &frame, 0, &pkt);
        GW_ASSERT(error == 0);
        sum += pkt.seq;
    }
    gw_bench_sink += sum;
}

static void add_codec(struct gw_bench_suite *suite, enum gw_pkt_kind kind, const char *name)
{
    struct codec_bench *b = gw_bench_take(sizeof(*b));
    b->codec = (struct gw_codec){.cookie = 1, .overhead = GW_BENCH_HDR - GW_WIRE_DATA_SIZE};
    for (uint32_t i = 0; i < GW_BENCH_BATCH; i++) {
        struct gw_pkt *pkt = &b->pkts[i];
        *pkt = (struct gw_pkt){
            .q = {.size = kind == GW_PKT_DATA ? GW_BENCH_MTU + GW_BENCH_HDR : GW_BENCH_HDR,
                  .kind = (uint8_t)kind},
            .src = 1,
            .dst = 2,
            .flow = 3,
            .seq = i,
            .entropy = (uint16_t)i,
            .buf = GW_BUF_NONE,
        };
        if (kind == GW_PKT_DATA) {
            pkt->data.total = 2 * GW_BENCH_BATCH;
            pkt->data.len = GW_BENCH_MTU;
            pkt->data.mss = GW_BENCH_MTU;
        } else if (kind == GW_PKT_GRAD) {
            pkt->agg.bitmap = 1;
            pkt->agg.values = 352;
        } else {
            pkt->q.class = GW_CLASS_CONTROL;
            pkt->ack.cum = i + 1;
        }
    }
    gw_bench_add(suite, name, codec_run, b);
}

/* Map: look up keys that are there, in random order. */

struct map_bench {
    struct gw_map map;
    uint64_t keys[GW_BENCH_INPUTS];
};

static void map_run(void *state, uint64_t count)
{
    struct map_bench *b = state;
    uint64_t sum = 0;
    for (uint64_t i = 0; i < count; i++)
        sum += gw_map_get(&b->map, b->keys[i % GW_BENCH_INPUTS]);
    gw_bench_sink += sum;
}

static void add_map(struct gw_bench_suite *suite)
{
    struct map_bench *b = gw_bench_take(sizeof(*b));
    struct gw_prng prng = gw_prng_derive(5, 0);
    gw_map_init(&b->map, gw_bench_take(gw_map_size(MAP_ENTRIES)), MAP_ENTRIES);
    for (uint32_t i = 0; i < MAP_ENTRIES; i++) {
        uint64_t key = gw_prng_next(&prng);
        GW_ASSERT(gw_map_put(&b->map, key, i) == 0);
        b->keys[i % GW_BENCH_INPUTS] = key;
    }
    gw_bench_add(suite, "map of 4096: get", map_run, b);
}

/* Heap: the first timer moves to a random later time, as when it has expired. */

struct heap_bench {
    struct gw_heap heap;
    uint32_t delays[GW_BENCH_INPUTS];
};

static void heap_run(void *state, uint64_t count)
{
    struct heap_bench *b = state;
    for (uint64_t i = 0; i < count; i++)
        gw_heap_set(&b->heap, gw_heap_first(&b->heap),
                    gw_heap_next(&b->heap) + b->delays[i % GW_BENCH_INPUTS]);
    gw_bench_sink += gw_heap_next(&b->heap);
}

static void add_heap(struct gw_bench_suite *suite)
{
    struct heap_bench *b = gw_bench_take(sizeof(*b));
    struct gw_prng prng = gw_prng_derive(6, 0);
    gw_heap_init(&b->heap, gw_bench_take(gw_heap_size(HEAP_IDS)), HEAP_IDS);
    for (uint32_t i = 0; i < GW_BENCH_INPUTS; i++)
        b->delays[i] = 1 + gw_prng_below(&prng, UINT32_C(1000000));
    for (uint32_t id = 0; id < HEAP_IDS; id++)
        gw_heap_set(&b->heap, id, b->delays[id % GW_BENCH_INPUTS]);
    gw_bench_add(suite, "heap of 1024: set", heap_run, b);
}

void gw_bench_add_data(struct gw_bench_suite *suite)
{
    add_codec(suite, GW_PKT_DATA, "codec, data: encode + decode");
    add_codec(suite, GW_PKT_ACK, "codec, ACK: encode + decode");
    add_codec(suite, GW_PKT_GRAD, "codec, gradient: encode + decode");
    add_map(suite);
    add_heap(suite);
}
