/*
 * Writes random scenarios; see random_scenario.h.
 *
 * The network is drawn first and loaded, so that faults, overrides and queues can speak of its
 * nodes and of its bandwidth-delay product; then the rest is appended and the file is complete.
 *
 * Invariant: every file loads, and without a lasting fault every message can be delivered.
 */
#include "swarm/random_scenario.h"

#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "support.h"
#include "swarm/draw.h"
#include "swarm/random_call_jobs.h"
#include "swarm/random_jobs.h"
#include "swarm/random_options.h"
#include "swarm/random_pcn.h"
#include "swarm/random_worth.h"

enum {
    HOSTS_MAX = 12,       /* of a list of links; the other kinds are bounded by name */
    SWITCHES_MAX = 6,     /* of a list of links */
    PACKETS_MAX = 8000,   /* of all messages together, about */
    FLIGHT_WINDOWS = 800, /* the longest packet, in smallest latencies: the engine's ring is 4096 */
    MESSAGE_MAX = 1 << 20,
    FAULTS_MAX = 5,
    ENTRIES_MAX = 3,
    NAME_MAX_CHARS = 24,
    DELAY_LATENCIES = 200, /* of a reordered packet, at most */
    LASTING_ONCE_IN = 2,   /* besides the chance of every feature */
    JOBS_ONCE_IN = 3,
    CALLS_ONCE_IN = 3, /* of scenarios that have jobs */
    PCN_ONCE_IN = 2,   /* where queues mark */
    /* Of the seed: apart from the scenario itself, and from swarm_test.c. */
    JOBS_STREAM = 2,
    PCN_STREAM = 3,
    CALLS_STREAM = 4,
    WORTH_STREAM = 5, /* of an entry */
    JOB_MTU_MIN = 16, /* a few elements per packet */
};

/* What a scenario has at all; each with chance 1/2. */
enum feature {
    HAS_OVERRIDES,
    HAS_SLOW_LINKS,
    HAS_DOWN,
    HAS_RATE,
    HAS_LOSS,
    HAS_CORRUPT,
    HAS_NODE_DOWN,
    HAS_CRASH,
    HAS_DUPLICATE,
    HAS_REORDER,
    HAS_LASTING_FAULTS, /* with a chance of its own */
    HAS_CONVERGENCE,
    HAS_JITTER,
    HAS_COALESCING,
    HAS_TRAINS,
    HAS_STALL,
    HAS_PAYLOAD,
    HAS_SHARED_POOL,
    HAS_SMALL_QUEUES,
    HAS_ALGORITHM_PARAMS,
    HAS_SAMPLES,
    HAS_LOSSLESS, /* where routes only lead up and then down: others can lock each other */
    FEATURES,
};

struct writer {
    FILE *out;
    struct gw_prng prng;
    const char *directory;
    uint32_t features; /* bit per enum feature */
    bool wants_jobs;   /* and gets them unless the network forbids */
    bool wants_calls;  /* likewise, instead */
    uint32_t mtu, header;
    uint32_t packets;                  /* that all messages may have together */
    uint64_t rate_bps;                 /* of most links */
    gw_time latency;                   /* of most links; others are longer */
    const struct gw_scenario *network; /* the loaded first part */
    gw_time horizon;                   /* about how long the run takes */
    bool sends_blasts;                 /* what has been written of the transport */
};

static uint64_t between(struct writer *w, uint64_t low, uint64_t high)
{
    return gw_draw_between(&w->prng, low, high);
}

static uint64_t between_log(struct writer *w, uint64_t low, uint64_t high)
{
    return gw_draw_log(&w->prng, low, high);
}

static bool once_in(struct writer *w, uint32_t of)
{
    return gw_draw_once_in(&w->prng, of);
}

static bool has(const struct writer *w, enum feature feature)
{
    return w->features >> feature & 1;
}

static void write_time(struct writer *w, const char *key, gw_time time)
{
    if (time == GW_TIME_NEVER)
        fprintf(w->out, "%s: never", key);
    else
        fprintf(w->out, "%s: %" PRIu64 "ps", key, time);
}

/* The word number `index` of "a|b|c". */
static void write_choice(struct writer *w, const char *choices)
{
    choices = gw_draw_word(&w->prng, choices);
    fprintf(w->out, "%.*s", (int)strcspn(choices, "|"), choices);
}

/* A time that is waited for, and does not follow from the network: the limit of a run is a number
 * of base RTTs, so it is drawn in these and always written. */
static bool is_timeout(const struct gw_param *param)
{
    return param->type == GW_PARAM_TIME && strncmp(param->name, "rto", 3) == 0;
}

/* Lossless queues have no use for a discipline that drops while there is room, and blasts none for
 * ranks by place. */
static const struct gw_algo *draw_algorithm(struct writer *w, const struct gw_registry *registry)
{
    const struct gw_algo *algo = NULL;
    do
        algo = registry->algos[gw_prng_below(&w->prng, registry->count)];
    while ((registry == &gw_qdisc_registry && has(w, HAS_LOSSLESS) &&
            ((const struct gw_qdisc_ops *)(const void *)algo)->drops_early) ||
           (registry == &gw_urgency_registry && w->sends_blasts &&
            ((const struct gw_urgency_ops *)(const void *)algo)->ranks_by_place));
    return algo;
}

/* Where links hold data back, control leaves first whatever a preset says. */
static bool is_lossless_weight(const struct writer *w, const struct gw_param *param)
{
    return has(w, HAS_LOSSLESS) && strcmp(param->name, "control_weight") == 0;
}

/* Kind, preset and parameters of one of the registry's entries, as the inside of a section. Before
 * the name of what goes with credit is `before`. */
static void write_algorithm(struct writer *w, const struct gw_registry *registry,
                            const char *before)
{
    const struct gw_algo *algo = draw_algorithm(w, registry);
    const struct gw_cc_ops *cc = (const void *)algo; /* where there is a `before` */
    if (registry == &gw_cc_registry)
        w->sends_blasts = cc->on_report != NULL;
    fprintf(w->out, "  kind: %s%s\n", *before && cc->on_report ? "" : before, algo->name);
    const char *preset = NULL;
    if (algo->preset_count && once_in(w, 3))
        preset = algo->presets[gw_prng_below(&w->prng, algo->preset_count)].name;
    if (preset && registry == &gw_loss_registry && strcmp(algo->name, "trim") == 0 &&
        strcmp(preset, "drafts") == 0)
        preset = NULL; /* without a timer what faults lose is never repaired */
    if (preset)
        fprintf(w->out, "  preset: %s\n", preset);
    struct gw_random_options options = gw_random_options_of(algo, preset);
    const struct gw_random_scale scale = {w->mtu, w->network->bdp, w->rate_bps};
    for (uint32_t i = 0; has(w, HAS_ALGORITHM_PARAMS) && i < algo->param_count; i++)
        if (once_in(w, 3) && !is_timeout(&algo->params[i]) &&
            !is_lossless_weight(w, &algo->params[i]))
            gw_random_options_write(&options, i, &scale, w->out, &w->prng);
    for (uint32_t i = 0; i < algo->param_count; i++) {
        if (is_timeout(&algo->params[i])) {
            fprintf(w->out, "  %s: ", algo->params[i].name);
            fprintf(w->out, "%" PRIu64 "ps\n", between(w, 0, 4 * w->network->brtt_max));
        }
        if (is_lossless_weight(w, &algo->params[i]))
            fputs("  control_weight: 0\n", w->out);
    }
}

/* Bounds of what decides the size of a network. Kinds that are not listed keep their defaults. */
static const struct bound {
    const char *kind, *name;
    uint32_t low, high;
} bounds[] = {
    {"star", "hosts", 2, 16},
    {"dumbbell", "hosts", 1, 8},
    {"tree", "depth", 1, 3},
    {"tree", "fanout", 1, 3},
    {"tree", "hosts_per_leaf", 2, 3},
    {"leaf-spine", "leaves", 1, 4},
    {"leaf-spine", "spines", 1, 4},
    {"leaf-spine", "hosts_per_leaf", 2, 6},
    {"leaf-spine", "links_per_pair", 1, 3},
    {"fat-tree", "hosts_per_tor", 1, 3},
};

static void write_sizes(struct writer *w, const struct gw_algo *algo)
{
    for (uint32_t i = 0; i < GW_COUNT_OF(bounds); i++)
        if (strcmp(bounds[i].kind, algo->name) == 0)
            fprintf(w->out, "  %s: %" PRIu64 "\n", bounds[i].name,
                    between(w, bounds[i].low, bounds[i].high));
    for (uint32_t i = 0; i < algo->param_count; i++)
        if (algo->params[i].type == GW_PARAM_RATE && !algo->params[i].initial && once_in(w, 3))
            fprintf(w->out, "  %s: %" PRIu64 "bps\n", algo->params[i].name,
                    between(w, w->rate_bps / 4, 2 * w->rate_bps));
    if (strcmp(algo->name, "fat-tree") != 0)
        return;
    bool wide = once_in(w, 2), deep = once_in(w, 2);
    fprintf(w->out, "  k: %d\n  tiers: %d\n", wide ? 4 : 2, deep ? 3 : 2);
    fprintf(w->out, "  oversubscription: %d\n", wide && deep && once_in(w, 2) ? 2 : 1);
    fprintf(w->out, "  tor_oversubscription: %d\n", wide && once_in(w, 2) ? 2 : 1);
}

static void write_link(struct writer *w, const char *a, uint32_t i, const char *b, uint32_t j)
{
    fprintf(w->out, "    - {between: [%s%u, %s%u]", a, i, b, j);
    if (has(w, HAS_OVERRIDES) && once_in(w, 3))
        fprintf(w->out, ", rate: %" PRIu64 "bps", between(w, w->rate_bps / 4, 2 * w->rate_bps));
    if (has(w, HAS_OVERRIDES) && once_in(w, 3))
        write_time(w, ", latency", between(w, w->latency, 4 * w->latency));
    fputs("}\n", w->out);
}

static void write_names(struct writer *w, const char *key, const char *name, uint32_t count)
{
    fprintf(w->out, "  %s: [", key);
    for (uint32_t i = 0; i < count; i++)
        fprintf(w->out, "%s%s%u", i ? ", " : "", name, i);
    fputs("]\n", w->out);
}

/* A random connected graph of switches, on which hosts hang with one or two links. */
static void write_lists(struct writer *w)
{
    if (once_in(w, 8)) {
        write_names(w, "hosts", "h", 2);
        fputs("  links:\n", w->out);
        write_link(w, "h", 0, "h", 1);
        return;
    }
    uint32_t hosts = (uint32_t)between(w, 2, HOSTS_MAX);
    uint32_t switches = (uint32_t)between(w, 1, SWITCHES_MAX);
    write_names(w, "hosts", "h", hosts);
    write_names(w, "switches", "s", switches);
    fputs("  links:\n", w->out);
    for (uint32_t s = 1; s < switches; s++)
        write_link(w, "s", s, "s", gw_prng_below(&w->prng, s));
    for (uint32_t extra = (uint32_t)between(w, 0, switches); switches > 1 && extra > 0; extra--) {
        uint32_t s = (uint32_t)between(w, 1, switches - 1);
        write_link(w, "s", s, "s", gw_prng_below(&w->prng, s));
    }
    for (uint32_t h = 0; h < hosts; h++)
        for (uint32_t links = once_in(w, 3) ? 2 : 1; links > 0; links--)
            write_link(w, "h", h, "s", gw_prng_below(&w->prng, switches));
}

static void write_topology(struct writer *w)
{
    const struct gw_registry *registry = &gw_topo_registry;
    const struct gw_algo *algo = registry->algos[gw_prng_below(&w->prng, registry->count)];
    fprintf(w->out, "topology:\n  kind: %s\n  rate: %" PRIu64 "bps\n", algo->name, w->rate_bps);
    write_time(w, "  latency", w->latency);
    write_time(w, "\n  switch_latency", once_in(w, 3) ? 0 : between(w, 1, 2 * w->latency));
    write_time(w, "\n  host_delay", once_in(w, 2) ? 0 : between(w, 1, 2 * w->latency));
    fputc('\n', w->out);
    if (strcmp(algo->name, "links") == 0) {
        write_lists(w);
        w->features &= ~(1u << HAS_LOSSLESS);
    } else {
        write_sizes(w, algo);
    }
}

static void write_host(struct writer *w)
{
    uint32_t train = has(w, HAS_TRAINS) ? (uint32_t)between_log(w, 1, 64) : 1;
    uint32_t jitter_milli = has(w, HAS_JITTER) ? (uint32_t)between(w, 0, 2000) : 0;
    w->mtu = (uint32_t)(once_in(w, 6) ? between(w, 1, 64) : between_log(w, 65, 9000));
    w->header = once_in(w, 3) ? (uint32_t)between(w, 1, 256) : 64;
    w->rate_bps = between_log(w, UINT64_C(20000000), UINT64_C(800000000000));
    /* Slowest link at its slowest, and a train with its jitter. */
    gw_time packet = gw_serialisation(gw_byte_time_from_bps(w->rate_bps), w->mtu + w->header);
    gw_time longest = packet * 4 * 10 * train * (1 + jitter_milli / 500);
    gw_time least = longest / FLIGHT_WINDOWS;
    w->latency = between_log(w, least > GW_NS ? least : GW_NS, 20 * packet + 2 * least + GW_NS);
    fprintf(w->out, "host:\n  mtu: %u\n  header: %u\n  train: %u\n  jitter: %u.%03u\n", w->mtu,
            w->header, train, jitter_milli / 1000, jitter_milli % 1000);
    if (has(w, HAS_COALESCING)) {
        fprintf(w->out, "  ack_every: %" PRIu64 "\n", between_log(w, 1, 32));
        write_time(w, "  ack_delay", between(w, 1, 20 * packet));
        fputc('\n', w->out);
    }
    if (has(w, HAS_PAYLOAD) && once_in(w, 3)) /* it takes one thread */
        fputs("  payload: yes\n", w->out);
    if (has(w, HAS_STALL)) {
        write_time(w, "  stall",
                   between_log(w, 200 * (packet + w->latency), 40000 * (packet + w->latency)));
        fputc('\n', w->out);
    }
}

/* Two nodes with a link between them, by name. */
static void write_link_name(struct writer *w)
{
    const struct gw_topo *topo = &w->network->topo;
    const struct gw_link *link = &topo->links[gw_prng_below(&w->prng, topo->link_count)];
    bool swapped = once_in(w, 2);
    fprintf(w->out, "[%s, %s%s]", topo->nodes[link->side[swapped].node].name,
            topo->nodes[link->side[!swapped].node].name, once_in(w, 4) ? ", 0" : "");
}

/* The last keys of the section `topology`. */
static void write_overrides(struct writer *w)
{
    const uint32_t full = w->mtu + w->header;
    fputs("  override:\n", w->out);
    for (uint32_t i = (uint32_t)between(w, 1, 4); i > 0; i--) {
        fputs("    - {between: ", w->out);
        write_link_name(w);
        bool both = once_in(w, 2);
        if (!both)
            fputs(", direction: forward", w->out);
        if (once_in(w, 2))
            fprintf(w->out, ", rate: %" PRIu64 "bps",
                    between(w, w->rate_bps / (has(w, HAS_SLOW_LINKS) ? 4 : 1), 2 * w->rate_bps));
        if (both && once_in(w, 2))
            write_time(w, ", latency", between(w, w->latency, 4 * w->latency));
        if (!has(w, HAS_LOSSLESS) && once_in(w, 2))
            fprintf(w->out, ", queue: %" PRIu64, between_log(w, full, 40 * full));
        fputs("}\n", w->out);
    }
}

static void write_queue(struct writer *w)
{
    const uint64_t full = w->mtu + w->header, bdp = w->network->bdp;
    fputs("queue:\n", w->out);
    write_algorithm(w, &gw_qdisc_registry, "");
    if (has(w, HAS_LOSSLESS)) {
        fputs("  lossless: yes\n", w->out);
        if (once_in(w, 2)) /* so that small messages meet it */
            fprintf(w->out, "  xoff: %" PRIu64 "\n", between(w, 2 * full + 1, 9 * full));
        return;
    }
    if (has(w, HAS_SMALL_QUEUES))
        fprintf(w->out, "  capacity: %" PRIu64 "B\n", between(w, full, 8 * full));
    else if (once_in(w, 2))
        fprintf(w->out, "  capacity: %" PRIu64 ".%" PRIu64 "bdp\n", between(w, 1, 4),
                between(w, 0, 9));
    if (!has(w, HAS_SHARED_POOL))
        return;
    /* One port alone may hold a packet, whatever alpha. */
    uint64_t alpha_quarters = between(w, 1, 16);
    fprintf(w->out, "  shared: %" PRIu64 "\n  shared_alpha: %" PRIu64 ".%02" PRIu64 "\n",
            between(w, 4 * full, 4 * full + 4 * bdp), alpha_quarters / 4, alpha_quarters % 4 * 25);
    if (once_in(w, 2))
        fprintf(w->out, "  shared_alpha_important: %" PRIu64 "\n", between(w, 1, 8));
}

/* A message of at most `packets` packets; borders are as likely as anything between. */
static uint64_t draw_size(struct writer *w, uint32_t packets)
{
    uint64_t most = packets ? packets : 1;
    uint64_t whole = (once_in(w, 2) ? between_log(w, 1, most) : between(w, 1, most)) * w->mtu;
    uint64_t size = whole;
    switch (between(w, 0, 7)) {
    case 0:
        size = 0;
        break;
    case 1:
        size = 1;
        break;
    case 2:
        size = whole - 1;
        break;
    case 3:
        size = whole + 1;
        break;
    case 4:
    case 5:
        size = whole - between(w, 0, w->mtu - 1);
        break;
    default:
        break;
    }
    return size < MESSAGE_MAX ? size : MESSAGE_MAX;
}

static FILE *open_beside(const struct writer *w, const char *name)
{
    char path[GW_RANDOM_PATH_MAX];
    snprintf(path, sizeof(path), "%s/%s", w->directory, name);
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    return file;
}

static void write_distribution(struct writer *w, const char *name)
{
    FILE *file = open_beside(w, name);
    uint64_t small = between(w, 1, 4 * w->mtu);
    uint64_t large = small + draw_size(w, w->packets / 8);
    fprintf(file, "# bytes cumulative_probability\n%" PRIu64 " 0.%02" PRIu64 "\n%" PRIu64 " 1\n",
            small, between(w, 0, 99), large);
    fclose(file);
}

/* A flow list in which each trigger is pulled by earlier flows and starts later ones. */
struct matrix {
    FILE *connections; /* text without the counts, which come first in the file */
    uint32_t flows, triggers;
    uint32_t sent[64], received[64]; /* trigger that a flow pulls; 0: none */
    uint32_t started_by[64];         /* 0: the clock */
};

static void draw_trigger(struct writer *w, struct matrix *m, uint32_t flows_max, FILE *triggers)
{
    static const char *const kinds[] = {"oneshot", "multishot", "barrier"};
    uint32_t id = m->triggers + 1, pulls = 0, kind = (uint32_t)between(w, 0, 2);
    for (uint32_t tries = (uint32_t)between(w, 1, 4); tries > 0; tries--) {
        uint32_t flow = gw_prng_below(&w->prng, m->flows);
        uint32_t *pulled = once_in(w, 2) ? &m->sent[flow] : &m->received[flow];
        pulls += *pulled == 0;
        *pulled = *pulled ? *pulled : id;
    }
    if (pulls == 0)
        return;
    m->triggers++;
    uint32_t starts = (uint32_t)between(w, 1, kind == 1 ? pulls : 3);
    for (; starts > 0 && m->flows < flows_max; starts--)
        m->started_by[m->flows++] = id;
    fprintf(triggers, "trigger id %u %s", id, kinds[kind]);
    if (kind == 2)
        fprintf(triggers, " count %u", pulls);
    fputc('\n', triggers);
}

static void write_matrix(struct writer *w, const char *name)
{
    struct matrix m = {0};
    char *text = NULL;
    size_t size = 0;
    FILE *triggers = open_memstream(&text, &size);
    assert_non_null(triggers);
    const uint32_t hosts = w->network->topo.host_count;
    m.flows = (uint32_t)between(w, 1, 10);
    for (uint32_t t = (uint32_t)between(w, 0, 4); t > 0; t--)
        draw_trigger(w, &m, GW_COUNT_OF(m.sent), triggers);
    fclose(triggers);
    FILE *file = open_beside(w, name);
    fprintf(file, "Nodes %u\nConnections %u\nTriggers %u\n", hosts, m.flows, m.triggers);
    for (uint32_t i = 0; i < m.flows; i++) {
        uint32_t src = gw_prng_below(&w->prng, hosts);
        uint32_t dst = (src + (uint32_t)between(w, 1, hosts - 1)) % hosts;
        uint64_t bytes = draw_size(w, w->packets / m.flows);
        /* A size of 0 is a flow without end here, and the triggers of one are never pulled. */
        fprintf(file, "%u->%u id %u size %" PRIu64, src, dst, i + 1, bytes ? bytes : 1);
        if (m.started_by[i])
            fprintf(file, " trigger %u", m.started_by[i]);
        else
            fprintf(file, " start %" PRIu64, between(w, 0, w->horizon / 2));
        if (m.sent[i])
            fprintf(file, " send_done_trigger %u", m.sent[i]);
        if (m.received[i])
            fprintf(file, " recv_done_trigger %u", m.received[i]);
        fputc('\n', file);
    }
    fputs(text, file);
    free(text);
    fclose(file);
}

/* A count of a workload by its name; 0: the default is fine. */
static uint64_t draw_count(struct writer *w, const char *name)
{
    const uint32_t hosts = w->network->topo.host_count;
    if (strcmp(name, "degree") == 0)
        return between(w, 1, hosts - 1);
    if (strcmp(name, "receiver") == 0)
        return between(w, 0, hosts - 1);
    if (strcmp(name, "hosts") == 0)
        return between(w, 2, hosts < 6 ? hosts : 6);
    return between(w, 1, 4);
}

/* Workers on the first hosts, whatever racks these are in, that send to the last one. */
static void write_bursts(struct writer *w)
{
    const uint32_t others = w->network->topo.host_count - 1;
    uint64_t bytes = draw_size(w, w->packets / (4 * others));
    fputs("    hosts: 0", w->out);
    for (uint32_t host = 1; host < others; host++)
        fprintf(w->out, ",%u", host);
    fprintf(w->out, "\n    workers: %" PRIu64 "\n", between(w, 1, others < 6 ? others : 6));
    fprintf(w->out, "    iterations: %" PRIu64 "\n    size: %" PRIu64 "\n", between(w, 1, 5),
            bytes ? bytes : 1);
    write_time(w, "    idle", between_log(w, 1, w->horizon));
    write_time(w, "\n    start", between(w, 0, w->horizon / 4));
    fputs("\n    carry: ", w->out);
    write_choice(w, "nothing|threshold|window");
    fprintf(w->out, "\n    announce: %" PRIu64 "\n", 5 * between(w, 1, 15));
}

static void write_workload_entry(struct writer *w, uint32_t number)
{
    const struct gw_registry *registry = &gw_workload_registry;
    const struct gw_algo *algo;
    do /* random_jobs.c writes them */
        algo = registry->algos[gw_prng_below(&w->prng, registry->count)];
    while (strcmp(algo->name, "allreduce") == 0 || strcmp(algo->name, "training") == 0 ||
           strcmp(algo->name, "calls") == 0);
    fprintf(w->out, "  - kind: %s\n", algo->name);
    if (strcmp(algo->name, "bursts") == 0) {
        write_bursts(w);
        return;
    }
    struct gw_prng own = gw_prng_derive(w->prng.state, WORTH_STREAM);
    for (uint32_t i = 0; i < algo->param_count; i++) {
        const struct gw_param *param = &algo->params[i];
        if (gw_random_worth_message(w->out, param->name, &own))
            continue;
        char file[NAME_MAX_CHARS];
        if (strcmp(param->name, "file") == 0) {
            snprintf(file, sizeof(file), "swarm%u.txt", number);
            if (strcmp(algo->name, "matrix") == 0)
                write_matrix(w, file);
            else
                write_distribution(w, file);
            fprintf(w->out, "    file: %s\n", file);
        } else if (strcmp(param->name, "duration") == 0) {
            continue;
        } else if (param->type == GW_PARAM_BYTES) {
            fprintf(w->out, "    %s: %" PRIu64 "\n", param->name,
                    draw_size(w, w->packets / (2 * w->network->topo.host_count)));
        } else if (param->type == GW_PARAM_COUNT) {
            fprintf(w->out, "    %s: %" PRIu64 "\n", param->name, draw_count(w, param->name));
        } else if (param->type == GW_PARAM_TIME && once_in(w, 2)) {
            fprintf(w->out, "    %s: %" PRIu64 "ps\n", param->name, between(w, 0, w->horizon / 4));
        } else if (param->type == GW_PARAM_Q16) {
            fprintf(w->out, "    %s: 0.%" PRIu64 "\n", param->name, between(w, 1, 9));
        }
    }
}

/* The key of a fault whose value is a chance. */
static const char *chance_key(enum feature feature)
{
    switch (feature) {
    case HAS_LOSS:
        return "loss";
    case HAS_CORRUPT:
        return "corrupt";
    case HAS_DUPLICATE:
        return "duplicate";
    default:
        return "reorder";
    }
}

static void write_fault(struct writer *w, enum feature feature)
{
    gw_time at = once_in(w, 6) ? 0 : between(w, 0, w->horizon);
    bool lasts = has(w, HAS_LASTING_FAULTS) && once_in(w, 2);
    write_time(w, "  - {at", at);
    if (!lasts)
        write_time(w, ", until", at + 1 + between_log(w, 1, w->horizon));
    const struct gw_topo *topo = &w->network->topo;
    if (feature == HAS_NODE_DOWN || feature == HAS_CRASH) {
        fprintf(w->out, ", node: %s, %s: yes}\n",
                topo->nodes[gw_prng_below(&w->prng, topo->node_count)].name,
                feature == HAS_CRASH ? "crash" : "down");
        return;
    }
    fputs(", link: ", w->out);
    write_link_name(w);
    if (feature == HAS_REORDER)
        write_time(w, ", delay", between_log(w, 1, DELAY_LATENCIES * w->latency));
    if (feature == HAS_DOWN)
        fputs(", down: yes}\n", w->out);
    else if (feature == HAS_RATE)
        fprintf(w->out, ", rate: 0.%03" PRIu64 "}\n", between(w, 100, 999));
    else if (once_in(w, 12))
        fprintf(w->out, ", %s: 1}\n", chance_key(feature));
    else
        fprintf(w->out, ", %s: 0.%03" PRIu64 "}\n", chance_key(feature), between(w, 1, 300));
}

static void write_faults(struct writer *w)
{
    static const enum feature kinds[] = {HAS_DOWN,      HAS_RATE,  HAS_LOSS,      HAS_CORRUPT,
                                         HAS_NODE_DOWN, HAS_CRASH, HAS_DUPLICATE, HAS_REORDER};
    bool any = false;
    for (uint32_t i = (uint32_t)between(w, 0, FAULTS_MAX); i > 0; i--) {
        enum feature kind = kinds[gw_prng_below(&w->prng, GW_COUNT_OF(kinds))];
        if (!has(w, kind))
            continue;
        if (!any)
            fputs("faults:\n", w->out);
        any = true;
        write_fault(w, kind);
    }
    if (!has(w, HAS_CONVERGENCE))
        return;
    write_time(w, "convergence", once_in(w, 6) ? 0 : between(w, 0, w->horizon));
    fputc('\n', w->out);
}

/* Loads what is written so far, with a workload that every network can run. */
static void load_network(const char *file, struct gw_scenario *network)
{
    static const struct gw_override plain[] = {{"workload.kind", "permutation"},
                                               {"workload.size", "0"}};
    char why[GW_WHY_MAX] = "";
    if (gw_scenario_load(network, file, plain, GW_COUNT_OF(plain), why) != 0)
        fail_msg("the network does not load: %s", why);
}

static void write_algorithms(struct writer *w)
{
    static const struct gw_registry *const registries[] = {&gw_lb_registry, &gw_loss_registry,
                                                           &gw_urgency_registry};
    struct gw_prng own = gw_prng_derive(w->prng.state, 0);
    fputs("cc:\n", w->out);
    write_algorithm(w, &gw_cc_registry, gw_prng_below(&own, 4) ? "" : "eqds+");
    for (uint32_t i = 0; i < GW_COUNT_OF(registries); i++) {
        fprintf(w->out, "%s:\n", registries[i]->kind);
        write_algorithm(w, registries[i], "");
    }
}

/* Whether the queues of what is written so far can mark, so that a burst may be announced. */
static bool queues_mark(const char *file)
{
    struct gw_scenario scenario;
    uint64_t state[GW_QDISC_STATE_MAX / sizeof(uint64_t)] = {0};
    load_network(file, &scenario);
    const struct gw_queue_cfg *queue = &scenario.queue;
    queue->qdisc->init(state, &queue->cfg, queue->capacity);
    bool marks = queue->qdisc->mark_at && queue->qdisc->mark_at(state, &queue->cfg, 0);
    gw_scenario_free(&scenario);
    return marks;
}

/* One or two jobs or groups of jobs, on the same hosts, or one that makes calls, and perhaps flows
 * besides. */
static void write_jobs(struct writer *w)
{
    const struct gw_random_jobs jobs = {
        .out = w->out,
        .prng = &w->prng,
        .network = w->network,
        .packets = w->packets,
        .horizon = w->horizon,
    };
    if (w->wants_calls && gw_random_call_jobs_fit(w->network)) {
        gw_random_call_jobs_write(&jobs);
        return;
    }
    for (uint32_t entries = once_in(w, 4) ? 2 : 1; entries > 0; entries--)
        gw_random_jobs_write(&jobs);
}

static void write_workload(struct writer *w)
{
    fputs("workload:\n", w->out);
    bool has_jobs = w->wants_jobs && w->mtu >= JOB_MTU_MIN && gw_random_jobs_fit(w->network);
    if (has_jobs)
        write_jobs(w);
    uint32_t entries = (uint32_t)between(w, 1, ENTRIES_MAX);
    if (has_jobs && once_in(w, 2))
        return;
    for (uint32_t i = 0; i < entries; i++)
        write_workload_entry(w, i);
}

static void write_metrics(struct writer *w)
{
    write_time(w, "metrics:\n  sample", between(w, w->horizon / 30 + GW_NS, w->horizon + GW_NS));
    fputs(once_in(w, 2) ? "\n" : "\n  series: [rate, queue]\n", w->out);
}

static void draw_features(struct writer *w)
{
    w->features = (uint32_t)gw_prng_next(&w->prng) & ((1u << FEATURES) - 1);
    w->packets = (uint32_t)between_log(w, 16, PACKETS_MAX);
    if (!once_in(w, LASTING_ONCE_IN))
        w->features &= ~(1u << HAS_LASTING_FAULTS);
    if (has(w, HAS_DOWN) || has(w, HAS_NODE_DOWN))
        w->features &= ~(1u << HAS_LOSSLESS);
}

void gw_random_scenario_write(struct gw_random_scenario *random, const char *directory,
                              uint64_t seed)
{
    struct writer w = {.prng = gw_prng_derive(seed, 0), .directory = directory};
    struct gw_scenario network;
    draw_features(&w);
    struct gw_prng prng = gw_prng_derive(seed, JOBS_STREAM);
    w.wants_jobs = gw_draw_once_in(&prng, JOBS_ONCE_IN);
    prng = gw_prng_derive(seed, CALLS_STREAM);
    w.wants_calls = gw_draw_once_in(&prng, CALLS_ONCE_IN);
    if (w.wants_jobs)
        w.features |= 1u << HAS_STALL;
    *random = (struct gw_random_scenario){.options = {.wire = !once_in(&w, 4)}};
    snprintf(random->file, sizeof(random->file), "%s/swarm.yaml", directory);
    w.out = open_beside(&w, "swarm.yaml");
    fprintf(w.out, "name: swarm-%" PRIu64 "\nseed: %" PRIu64 "\n", seed, seed);
    write_host(&w);
    write_topology(&w);
    fflush(w.out);
    load_network(random->file, &network);
    w.network = &network;
    gw_time packet = gw_serialisation(gw_byte_time_from_bps(w.rate_bps), w.mtu + w.header);
    w.horizon = 4 * network.brtt_max + w.packets * packet / network.topo.host_count;
    random->options.seed = seed; /* the scenario's own, so that `gradwire sim` runs the same */
    random->options.pcap_link = gw_prng_below(&w.prng, network.topo.link_count);
    if (has(&w, HAS_OVERRIDES))
        write_overrides(&w);
    write_queue(&w);
    fflush(w.out);
    prng = gw_prng_derive(seed, PCN_STREAM);
    if (gw_draw_once_in(&prng, PCN_ONCE_IN) && queues_mark(random->file))
        gw_random_pcn_write(w.out, w.network->brtt_max, &prng);
    write_algorithms(&w);
    write_workload(&w);
    write_faults(&w);
    if (has(&w, HAS_SAMPLES))
        write_metrics(&w);
    fclose(w.out);
    gw_scenario_free(&network);
}

void gw_random_scenario_remove(const char *directory)
{
    static const char *const names[] = {"swarm.yaml", "swarm0.txt", "swarm1.txt", "swarm2.txt"};
    for (uint32_t i = 0; i < GW_COUNT_OF(names); i++) {
        char path[GW_RANDOM_PATH_MAX];
        snprintf(path, sizeof(path), "%s/%s", directory, names[i]);
        unlink(path);
    }
}
