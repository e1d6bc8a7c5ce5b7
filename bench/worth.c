/*
 * gw_bench_worth: what it costs to find out which fragments are important.
 *
 * A sender sends a blast of 100 MB, beyond the caches, as processes do: trains are pulled off the
 * endpoint and given to a UDP socket, and the kernel copies the values from the tensor. They go to
 * a socket that nobody reads, which costs less than any real way. With importance the sender takes
 * its sample and weighs each fragment before it leaves; "before" is what it costs to decide of all
 * fragments in a pass of its own, and to send with the bitmap. And values that are quantised, with
 * their sums and without.
 *
 * Each measurement has its turn right after the one without importance; the medians are compared,
 * so that a disturbance of the machine hits all alike or few.
 *
 *     gw_bench_worth             medians of 15, of all types and kernels
 *     gw_bench_worth with float32 avx2
 *                                one pass alone, for who counts instructions
 *
 * Not a test: nothing depends on what it finds.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "base/align.h"
#include "base/assert.h"
#include "base/cpu.h"
#include "base/prng.h"
#include "core/host/endpoint.h"
#include "net/datapath.h"
#include "net/node_memory.h"

enum {
    FRAGMENT = 1408, /* bytes of values: the default fragment of float32 */
    FRAGMENTS = 100 * 1000 * 1000 / FRAGMENT,
    TRAIN = 45, /* packets that the kernel takes at once */
    PKTS = 4 * GW_DATAPATH_TRAIN_MAX,
    REPETITIONS = 15,
    ALIGNMENT = 4096,
};

#define SIZE     ((size_t)FRAGMENTS * FRAGMENT)
#define RATE_BPS UINT64_C(400000000000)
#define STEP     (2 * GW_US) /* longer than a train takes at that rate */

_Noreturn void gw_assert_failed(const char *condition, const char *file, int line)
{
    fprintf(stderr, "gw_bench_worth: %s:%d: %s does not hold\n", file, line, condition);
    abort();
}

static const struct {
    const char *name;
    enum gw_dtype type;
} types[] = {{"float32", GW_DTYPE_F32},
             {"float16", GW_DTYPE_F16},
             {"bfloat16", GW_DTYPE_BF16},
             {"float64", GW_DTYPE_F64}};

enum { TYPES = sizeof(types) / sizeof(types[0]) };

struct measured {
    struct gw_importance_terms terms;
    struct gw_endpoint *endpoint;
    struct gw_datapath *datapath;
    const struct gw_transport *transport;
    unsigned char *from, *to;
    uint64_t *bits; /* a bit per fragment */
    gw_time now;
};

static char failure[GW_NET_ERROR_MAX];

static void must(int code)
{
    if (code) {
        fprintf(stderr, "gw_bench_worth: %s\n", failure);
        exit(EXIT_FAILURE);
    }
}

/* What was found out goes here, so that the compiler cannot leave it out. */
static volatile uint32_t sink;

/* ---- Blasts. ---- */

/* Sends the whole blast, as a driver does that the link never keeps waiting. */
static void emit(struct measured *m, const struct gw_send *send)
{
    struct gw_pkt *pkts[TRAIN];
    struct gw_node *node = gw_endpoint_node(m->endpoint);
    uint32_t flow, left = FRAGMENTS;
    int error = gw_endpoint_send(m->endpoint, send, &flow, m->now);
    GW_ASSERT(error == 0);
    while (left) {
        uint32_t answer = node->ready_count ? GW_OUTPUT_MORE : 0;
        node->ready_count = 0;
        while (answer & GW_OUTPUT_MORE) {
            answer = gw_node_output(node, 0, pkts, TRAIN, m->now);
            uint32_t count = answer & ~GW_OUTPUT_MORE;
            for (uint32_t i = 0; i < count; i++)
                left -= pkts[i]->q.kind == GW_PKT_DATA;
            if (count)
                must(gw_datapath_send(m->datapath, 0, pkts, count, failure));
        }
        m->now += STEP;
        gw_node_expire(node, m->now);
    }
    gw_endpoint_forget(m->endpoint, m->from, SIZE);
}

static struct gw_send send_of(const struct measured *m)
{
    return (struct gw_send){
        .peer = 1,
        .bytes = SIZE,
        .data = m->from,
        .transport = m->transport,
        .path = {.rate_bps = RATE_BPS, .brtt = 10 * GW_US, .brtt_max = 10 * GW_US, .bdp = 500000},
    };
}

static void emit_without(struct measured *m)
{
    const struct gw_send send = send_of(m);
    emit(m, &send);
}

static void emit_with(struct measured *m)
{
    struct gw_send send = send_of(m);
    send.importance = m->terms;
    emit(m, &send);
}

static void emit_decided_before(struct measured *m)
{
    const struct gw_importance_tensor tensor = {
        .values = m->from, .size = SIZE, .fragment_size = FRAGMENT};
    struct gw_importance importance;
    gw_importance_init(&importance, &tensor, &m->terms, 0);
    gw_importance_fill(&importance, m->bits);
    struct gw_send send = send_of(m);
    send.important = m->bits;
    emit(m, &send);
}

/* ---- Quantising. ---- */

static void quantise(struct measured *m, bool sums)
{
    const struct gw_scale scale = gw_scale_power(GW_SCALE_EXPONENT, 1);
    const struct gw_kernels *kernels = m->terms.kernels;
    const uint32_t values = FRAGMENT / gw_dtype_size(m->terms.type);
    for (size_t i = 0; i < FRAGMENTS; i++) {
        const void *from = m->from + i * FRAGMENT;
        gw_real sum = 0;
        if (sums)
            kernels->sum_abs[m->terms.type](&sum, &from, NULL, 1, values);
        sink += sum > 1;
        sink += kernels->quantise[m->terms.type](m->to + 4 * i * values, from, values, &scale);
    }
}

static void quantise_without(struct measured *m)
{
    quantise(m, false);
}

static void quantise_with(struct measured *m)
{
    quantise(m, true);
}

/* ---- Turns and medians. ---- */

typedef void pass(struct measured *m);

static double seconds_of(pass *run, struct measured *m)
{
    struct timespec begin, end;
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &begin);
    run(m);
    clock_gettime(CLOCK_THREAD_CPUTIME_ID, &end);
    return (double)(end.tv_sec - begin.tv_sec) + (double)(end.tv_nsec - begin.tv_nsec) * 1e-9;
}

static int compare_doubles(const void *a, const void *b)
{
    double difference = *(const double *)a - *(const double *)b;
    return (difference > 0) - (difference < 0);
}

static double median(double *seconds)
{
    qsort(seconds, REPETITIONS, sizeof(*seconds), compare_doubles);
    return seconds[REPETITIONS / 2];
}

static void print_row(struct measured *m, const char *what, const char *type)
{
    printf("%-8s %-8s %-16s %-8s", what, type, gw_importance_rule_names[m->terms.rule],
           m->terms.kernels->name);
}

static void measure_blast(struct measured *m, const char *type)
{
    double without[REPETITIONS], with[REPETITIONS], before[REPETITIONS];
    for (uint32_t r = 0; r < REPETITIONS; r++) {
        without[r] = seconds_of(emit_without, m);
        with[r] = seconds_of(emit_with, m);
        before[r] = seconds_of(emit_decided_before, m);
    }
    double time = median(without);
    print_row(m, "blast", type);
    printf(" %9.1f %9.2f %9.2f\n", time / FRAGMENTS * 1e9, median(with) / time,
           median(before) / time);
}

static void measure_quantise(struct measured *m, const char *type)
{
    double without[REPETITIONS], with[REPETITIONS];
    for (uint32_t r = 0; r < REPETITIONS; r++) {
        without[r] = seconds_of(quantise_without, m);
        with[r] = seconds_of(quantise_with, m);
    }
    double time = median(without);
    print_row(m, "quantise", type);
    printf(" %9.1f %9.2f\n", time / FRAGMENTS * 1e9, median(with) / time);
}

static void measure_all(struct measured *m)
{
    printf("%-43s %9s %9s %9s\n", "fragments of 1408 bytes, of 100 MB", "ns", "with", "before");
    for (size_t t = 0; t < TYPES; t++)
        for (const struct gw_kernels *const *k = gw_kernels_list; *k; k++) {
            if ((*k)->needs & ~gw_cpu_features())
                continue;
            m->terms = (struct gw_importance_terms){.type = types[t].type, .kernels = *k};
            for (m->terms.rule = GW_IMPORTANCE_MEDIAN_OF_MEANS;
                 m->terms.rule <= GW_IMPORTANCE_MEDIAN_OF_VALUES; m->terms.rule++)
                measure_blast(m, types[t].name);
            m->terms.rule = GW_IMPORTANCE_MEDIAN_OF_MEANS;
            if (m->terms.type < GW_DTYPE_SUMMABLE)
                measure_quantise(m, types[t].name);
        }
}

/* One blast, or one tensor quantised. False: the words say nothing that there is. */
static bool run_once(struct measured *m, char *const *words)
{
    static const struct {
        const char *name;
        pass *run;
    } passes[] = {{"without", emit_without},
                  {"with", emit_with},
                  {"before", emit_decided_before},
                  {"quantise", quantise_without},
                  {"quantise-with", quantise_with}};
    pass *run = NULL;
    for (size_t i = 0; i < sizeof(passes) / sizeof(passes[0]); i++)
        if (strcmp(words[0], passes[i].name) == 0)
            run = passes[i].run;
    for (size_t t = 0; t < TYPES; t++)
        if (strcmp(words[1], types[t].name) == 0)
            m->terms = (struct gw_importance_terms){.rule = GW_IMPORTANCE_MEDIAN_OF_MEANS,
                                                    .type = types[t].type};
    for (const struct gw_kernels *const *k = gw_kernels_list; *k; k++)
        if (strcmp(words[2], (*k)->name) == 0 && !((*k)->needs & ~gw_cpu_features()))
            m->terms.kernels = *k;
    if (!run || m->terms.rule == GW_IMPORTANCE_ALL || !m->terms.kernels)
        return false;
    run(m);
    return true;
}

/* ---- Memory. ---- */

_Noreturn static void die_of_memory(size_t size)
{
    fprintf(stderr, "gw_bench_worth: out of memory (%zu bytes)\n", size);
    exit(EXIT_FAILURE);
}

static void *take(size_t size)
{
    void *memory = aligned_alloc(ALIGNMENT, (size + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT);
    if (!memory)
        die_of_memory(size);
    return memset(memory, 0, size);
}

/* Of about 1: 0x3c is the upper byte of such a float16, float32 and bfloat16, and near that of a
 * float64. */
static void fill(unsigned char *to)
{
    const uint32_t exponents = UINT32_C(0x3c003c00), fractions = UINT32_C(0x00ff00ff);
    struct gw_prng prng = gw_prng_derive(1, 0);
    for (size_t i = 0; i < SIZE / 4; i++) {
        uint32_t x = exponents | ((uint32_t)gw_prng_next(&prng) & fractions);
        memcpy(to + 4 * i, &x, sizeof(x));
    }
}

static void set_transport(struct gw_transport *transport)
{
    *transport = (struct gw_transport){
        .cc = (const struct gw_cc_ops *)gw_registry_find(&gw_cc_registry, "dlcp"),
        .lb = (const struct gw_lb_ops *)gw_registry_find(&gw_lb_registry, "reps"),
        .loss = (const struct gw_loss_ops *)gw_registry_find(&gw_loss_registry, "timeout"),
    };
    gw_algo_defaults(&transport->cc->algo, &transport->cc_cfg);
    gw_algo_defaults(&transport->lb->algo, &transport->lb_cfg);
    gw_algo_defaults(&transport->loss->algo, &transport->loss_cfg);
}

/* A socket of loopback. */
static struct gw_datapath *open_datapath(struct gw_node_memory *memory)
{
    const struct gw_datapath_cfg cfg = {
        .pool = &memory->pool,
        .address = "127.0.0.1",
        .entropies = 1,
        .mtu = FRAGMENT,
        .peers_max = 1,
        .has_trains = true,
    };
    struct gw_datapath *datapath;
    must(gw_datapath_open(gw_datapath_find("udp"), &cfg, &datapath, failure));
    return datapath;
}

int main(int argc, char **argv)
{
    struct gw_node_memory memory[2];
    struct gw_transport transport;
    for (int i = 0; i < 2; i++)
        if (gw_node_memory_open(&memory[i], PKTS, FRAGMENT) != 0)
            die_of_memory(PKTS * FRAGMENT);
    struct gw_datapath *datapath = open_datapath(&memory[0]), *nobody = open_datapath(&memory[1]);
    const struct gw_datapath_peer peer = {
        .addr = *gw_datapath_address(nobody), .entropies = 1, .tx_cookie = 0, .rx_cookie = 0};
    gw_datapath_set_peer(datapath, &peer);
    const struct gw_endpoint_cfg cfg = {
        .address = 0,
        .port_count = 1,
        .tx_flows_max = 1,
        .rx_flows_max = 1,
        .span_max = 64,
        .control_max = UINT32_MAX,
        .blasts_max = 1,
        .blast_packets_max = FRAGMENTS,
        .report_every = 1000 * GW_S, /* nobody reports, and nobody shall miss it */
        .mtu = FRAGMENT,
        .hdr = GW_DATAPATH_HDR_IPV4,
        .ack_every = 1,
        .train = TRAIN,
        .lends = true,
        .pool = &memory[0].pool,
    };
    set_transport(&transport);
    struct measured m = {
        .endpoint = gw_endpoint_init(take(gw_endpoint_size(&cfg)), &cfg),
        .datapath = datapath,
        .transport = &transport,
        .from = take(SIZE),
        .to = take(2 * SIZE),
        .bits = take(FRAGMENTS / 8 + sizeof(uint64_t)),
    };
    fill(m.from);
    if (argc == 1) {
        measure_all(&m);
    } else if (argc != 4 || !run_once(&m, argv + 1)) {
        fprintf(stderr, "usage: gw_bench_worth [without|with|before|quantise|quantise-with TYPE "
                        "KERNEL]\n");
        return 2;
    }
    return 0;
}
