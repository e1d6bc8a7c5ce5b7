/*
 * A tenant of a fabric who means ill: it attaches with a key of its own that is listed, and sends
 * well-formed packets with arbitrary contents, in its own name and in others', to the addresses and
 * about the jobs that it is told. For bench/soak, which checks that nobody else notices.
 *
 *     gw_bench_attacker [--authenticate|--encrypt] SEED PER_SECOND KEY_FILE HOST:PORT...
 *                       -- ADDRESS... -- JOB...
 *
 * It attaches at one HOST:PORT after the other, as somebody else every few seconds: as a rank of a
 * job of its own, or as a host without a job, as a server is. Addresses on the overlay and numbers
 * of jobs are in hexadecimal, as the daemons' logs have them. It ends when it is killed.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/prng.h"
#include "core/job.h"
#include "net/station/station.h"
#include "pool_fixture.h"
#include "stranger.h"
#include "wire/wire.h"

enum {
    TARGETS_MAX = 16, /* of each kind */
    PKTS = 4096,
    MTU = 1408,
    BURST = 32,      /* packets at a time */
    WORLD = 4,       /* of its own job */
    TARGET_JOBS = 4, /* of these it says half of what it says about jobs */
};

#define LIFE (5 * GW_S) /* of a session */

struct attacker {
    struct gw_node node;
    uint16_t ready[1];
    bool is_ready;
    struct gw_prng prng;
    struct gw_pkt_pool *pool; /* the station's */
    const char *places[TARGETS_MAX];
    uint32_t addresses[TARGETS_MAX], jobs[TARGETS_MAX];
    uint32_t place_count, address_count, job_count;
    uint32_t own_address, own_job;
    bool authenticates, encrypts; /* as the daemons do */
    uint32_t left;                /* of a burst */
    gw_time pause;                /* between bursts */
};

static void give_up(const char *why)
{
    fprintf(stderr, "attacker: %s\n", why);
    exit(1);
}

static uint32_t any(struct attacker *a, const uint32_t *from, uint32_t count)
{
    return count ? from[gw_prng_below(&a->prng, count)] : (uint32_t)gw_prng_next(&a->prng);
}

static uint32_t output(struct gw_node *node, uint16_t port, struct gw_pkt **pkts, uint32_t max,
                       gw_time now)
{
    struct attacker *a = (struct attacker *)node;
    struct gw_pkt *pkt = max ? gw_pkt_claim(a->pool) : NULL;
    (void)port;
    if (!pkt || !a->left) {
        if (pkt)
            gw_pkt_release(a->pool, pkt);
        a->is_ready = false;
        return 0;
    }
    gw_stranger_fill(&a->prng, a->pool, MTU, now, pkt);
    bool is_honest = gw_prng_below(&a->prng, 2);
    pkt->src = is_honest ? a->own_address : any(a, a->addresses, a->address_count);
    pkt->dst = any(a, a->addresses, a->address_count);
    if (gw_stranger_names_job(pkt)) {
        uint32_t job =
            gw_prng_below(&a->prng, TARGET_JOBS) ? any(a, a->jobs, a->job_count) : a->own_job;
        gw_stranger_name_job(pkt, gw_job_shard(job, gw_prng_below(&a->prng, 2)));
    }
    pkt->q.key = gw_flow_key(pkt->src, pkt->dst, pkt->flow);
    pkts[0] = pkt;
    a->left--;
    a->is_ready = a->left > 0;
    return 1 | (a->is_ready ? GW_OUTPUT_MORE : 0);
}

static void input(struct gw_node *node, uint16_t port, struct gw_pkt **pkts, uint32_t count,
                  gw_time now)
{
    (void)port;
    (void)now;
    for (uint32_t i = 0; i < count; i++)
        gw_pkt_release(((struct attacker *)node)->pool, pkts[i]);
}

static void expire(struct gw_node *node, gw_time now)
{
    struct attacker *a = (struct attacker *)node;
    if (gw_time_before(now, node->deadline))
        return;
    node->deadline = gw_time_add(now, a->pause);
    a->left = BURST;
    gw_node_report(node, 0, &a->is_ready);
}

/* One life: a session with one of the places, by another address than before. */
static void live(struct attacker *a, const struct gw_key *key)
{
    static const struct gw_node_ops ops = {input, output, expire};
    char error[GW_NET_ERROR_MAX];
    struct gw_neighbour_event event;
    struct gw_station *station;
    a->own_address = gw_key_random_address();
    a->own_job = gw_key_job(key, "attack");
    struct gw_station_cfg cfg = {
        .entropies = 1,
        .packets = PKTS,
        .mtu = MTU,
        .peers_max = TARGETS_MAX,
        .insists = true,
        .authenticates = a->authenticates,
        .encrypts = a->encrypts,
        .role = GW_ATTACH_HOST,
        .node_address = a->own_address,
        .keys = key,
        .key_count = 1,
    };
    struct gw_greeting greeting = {
        .job = gw_prng_below(&a->prng, 2) ? a->own_job : 0,
        .world = WORLD,
        .rank = (uint16_t)gw_prng_below(&a->prng, WORLD),
        .is_direct = gw_prng_below(&a->prng, 2),
        .wants_table = gw_prng_below(&a->prng, 2),
    };
    if (gw_station_open(&cfg, &station, error))
        give_up(error);
    a->pool = gw_station_pool(station);
    a->node = (struct gw_node){.ops = &ops, .port_count = 1, .ready = a->ready};
    a->is_ready = false;
    struct gw_loop *loop = gw_station_loop(station);
    struct gw_loop_port port = {gw_loop_add(loop, &a->node), 0};
    const char *place = a->places[gw_prng_below(&a->prng, a->place_count)];
    if (gw_station_dial(station, place, &greeting, error) < 0)
        give_up(error);
    gw_time end = gw_time_add(gw_loop_now(loop), LIFE);
    while (gw_time_before(gw_loop_now(loop), end)) {
        if (gw_station_turn(station, gw_time_add(gw_loop_now(loop), GW_MS), error))
            break; /* the interface may be gone */
        while (gw_station_poll(station, &event))
            if (event.kind == GW_NEIGHBOUR_UP)
                gw_loop_link(loop, port, event.peer, true);
    }
    gw_station_close(station);
    gw_station_free(station);
}

/* The words up to "--" or the end; returns where the next ones begin. */
static char **take(char **words, const char **into, uint32_t *count)
{
    while (*words && strcmp(*words, "--") != 0) {
        if (*count == TARGETS_MAX)
            give_up("too many targets");
        into[(*count)++] = *words++;
    }
    return *words ? words + 1 : words;
}

static char **take_numbers(char **words, uint32_t *into, uint32_t *count)
{
    const char *texts[TARGETS_MAX];
    words = take(words, texts, count);
    for (uint32_t i = 0; i < *count; i++)
        into[i] = (uint32_t)strtoul(texts[i], NULL, 16);
    return words;
}

int main(int argc, char **argv)
{
    static struct attacker a;
    struct gw_key key;
    char error[GW_NET_ERROR_MAX];
    a.encrypts = argc > 1 && strcmp(argv[1], "--encrypt") == 0;
    a.authenticates = a.encrypts || (argc > 1 && strcmp(argv[1], "--authenticate") == 0);
    argc -= a.authenticates;
    argv += a.authenticates;
    if (argc < 5 || atoi(argv[2]) < 1)
        give_up("expected [--authenticate|--encrypt] SEED PER_SECOND KEY_FILE HOST:PORT... -- "
                "ADDRESS... -- JOB...");
    a.prng = gw_prng_derive(strtoull(argv[1], NULL, 10), 0);
    a.pause = GW_S / (gw_time)atoi(argv[2]) * BURST;
    char **words = take(argv + 4, a.places, &a.place_count);
    words = take_numbers(words, a.addresses, &a.address_count);
    take_numbers(words, a.jobs, &a.job_count);
    if (gw_key_setup())
        give_up("the system gives no random numbers");
    if (gw_key_from_file(argv[3], false, &key, error))
        give_up(error);
    for (;;)
        live(&a, &key);
}
