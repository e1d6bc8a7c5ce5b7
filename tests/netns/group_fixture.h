/*
 * The ranks of a job in one process, over loopback, without threads: each has a station, endpoint,
 * communicator and ways of its own, and rank 0 the home. The test takes their turns.
 */
#ifndef GW_TESTS_GROUP_FIXTURE_H
#define GW_TESTS_GROUP_FIXTURE_H

#include "support.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "net/ranks/ways.h"
#include "net/udp/sock.h"

enum {
    RANKS = 3,
    MTU = 1400,
    PEERS = 16,
    PKTS = 1024,
    ADDRESS = 4711,    /* of rank 0 */
    HOME = 815,        /* of the server in its process */
    TURNS_MAX = 20000, /* of a millisecond at most: what has not happened by then does not */
};

struct rank {
    struct gw_station *station;
    struct gw_overlay_home *home; /* of rank 0 */
    struct gw_endpoint *endpoint;
    void *memory;
    struct gw_communicator *comm;
    struct gw_ways *ways;
    enum gw_communicator_event_kind last;
    enum gw_job_reason reason;
    char refusal[GW_NET_ERROR_MAX];
    bool has_ended; /* one way or another, meeting the others */
    uint32_t done;  /* calls */
};

struct group {
    struct rank ranks[RANKS];
    struct gw_key key;
    uint32_t job;
    struct gw_transport transport;
    char join[GW_SOCK_ADDR_NAME_MAX];
    const char *servers[1];
    int hidden; /* rank whom nobody can dial; 0: none */
    uint16_t port;
};

static inline void open_group(struct group *g)
{
    struct gw_sock_addr addr;
    char error[GW_NET_ERROR_MAX];
    int fd;
    memset(g, 0, sizeof(*g));
    assert_int_equal(gw_key_setup(), 0);
    gw_key_from_text("secret", 6, &g->key);
    g->job = gw_key_job(&g->key, "job");
    assert_int_equal(gw_sock_addr_parse("127.0.0.1", 0, &addr), 0);
    assert_int_equal(gw_sock_open_row(&addr, 1, 0, &fd, error), 0);
    gw_sock_close_row(&fd, 1);
    g->port = gw_sock_addr_port(&addr);
    g->servers[0] = g->join;
    gw_sock_addr_format(&addr, g->join, sizeof(g->join));
    assert_int_equal(gw_overlay_transport("smartt", "reps", false, 1, &g->transport, error), 0);
}

static inline void open_home(struct rank *rank, const struct gw_notice_path *path)
{
    const struct gw_overlay_home_cfg home = {
        .station = rank->station,
        .server_address = HOME,
        .switch_address = HOME + 1,
        .adds_up = true,
        .ports = RANKS + 2,
        .aggregators = 64,
        .jobs_max = 1,
        .ranks_max = RANKS,
        .stall = 60 * GW_S,
        .notice_path = *path,
        .mtu = MTU,
        .values = 300,
        .window = 64,
    };
    assert_int_equal(gw_overlay_home_open(&home, &rank->home), 0);
}

static inline void open_communicator(struct group *g, uint16_t number, uint8_t option)
{
    struct rank *rank = &g->ranks[number];
    struct gw_endpoint_cfg endpoint = {
        .address = ADDRESS + number,
        .rx_flows_max = 64,
        .control_max = 64,
        .mtu = MTU,
        .hdr = 72,
        .seed = 1,
        .pool = gw_station_pool(rank->station),
    };
    struct gw_communicator_cfg cfg = {
        .address = endpoint.address,
        .job = g->job,
        .rank = number,
        .world = RANKS,
        .via = GW_VIA_RING,
        .server_count = 1,
        .whole = 1 << 20,
        .notice = option,
        .transport = &g->transport,
        .mtu = MTU,
        .segment = 1 << 16,
        .flows = 2,
        .incarnation = number + 1,
        .worker = {.timeout = GW_S, .window_min = 1},
        .retry = GW_S,
        .beat = GW_S,
        .stall = 60 * GW_S,
        .kernels = gw_kernels_best(0),
        .allocator = gw_node_memory_allocator(),
    };
    gw_communicator_demand(&cfg, &endpoint);
    assert_int_equal(gw_overlay_endpoint_open(&endpoint, &rank->endpoint), 0);
    cfg.endpoint = rank->endpoint;
    rank->memory = gw_node_memory_take(gw_communicator_size(&cfg));
    assert_non_null(rank->memory);
    assert_int_equal(gw_communicator_init(&rank->comm, rank->memory, &cfg,
                                          gw_loop_now(gw_station_loop(rank->station))),
                     0);
}

static inline void open_rank(struct group *g, uint16_t number, uint8_t option,
                             const struct gw_notice_path *path)
{
    struct rank *rank = &g->ranks[number];
    char error[GW_NET_ERROR_MAX];
    struct gw_station_cfg station = {
        .address = "127.0.0.1",
        .family_of = g->join,
        .port = number == 0 ? g->port : 0,
        .entropies = 1,
        .packets = PKTS,
        .mtu = MTU,
        .peers_max = PEERS,
        .accepts = number == 0 || number != g->hidden,
        .node_address = number == 0 ? HOME : ADDRESS + number,
        .role = GW_ATTACH_HOST,
        .keys = &g->key,
        .key_count = 1,
    };
    assert_int_equal(gw_station_open(&station, &rank->station, error), 0);
    if (number == 0)
        open_home(rank, path);
    open_communicator(g, number, option);
    struct gw_loop *loop = gw_station_loop(rank->station);
    const struct gw_ways_cfg ways = {
        .station = rank->station,
        .endpoint = rank->endpoint,
        .port = {.node = gw_loop_add(loop, gw_endpoint_node(rank->endpoint))},
        .comm = rank->comm,
        .home = rank->home,
        .home_address = HOME,
        .address = ADDRESS + number,
        .job = g->job,
        .rank = number,
        .world = RANKS,
        .notice = option,
        .servers = g->servers,
        .server_count = 1,
        .is_home_rank_0 = true,
        .mtu = MTU,
    };
    assert_int_equal(gw_ways_open(&ways, &rank->ways, error), 0);
}

static inline void close_group(struct group *g)
{
    for (int i = 0; i < RANKS; i++) {
        struct rank *rank = &g->ranks[i];
        if (!rank->comm)
            continue;
        gw_station_close(rank->station);
        gw_ways_close(rank->ways);
        gw_communicator_fini(rank->comm);
        gw_node_memory_give(rank->memory);
        gw_node_memory_give(rank->endpoint);
        if (rank->home)
            gw_overlay_home_close(rank->home);
        gw_station_free(rank->station);
    }
}

static inline void take_neighbours(struct rank *rank)
{
    struct gw_neighbour_event neighbour;
    char why[GW_NET_ERROR_MAX];
    while (gw_station_poll(rank->station, &neighbour)) {
        if (rank->home && neighbour.dial < 0)
            gw_overlay_home_neighbour(rank->home, &neighbour, why);
        if (!gw_ways_neighbour(rank->ways, &neighbour, rank->refusal))
            rank->has_ended = true;
    }
}

static inline void turn(struct rank *rank)
{
    struct gw_event happened;
    struct gw_communicator_event event;
    char error[GW_NET_ERROR_MAX];
    struct gw_loop *loop = gw_station_loop(rank->station);
    gw_time until = gw_time_add(gw_loop_now(loop), GW_MS / 4);
    assert_int_equal(gw_station_turn(rank->station, until, error), 0);
    take_neighbours(rank);
    gw_ways_turn(rank->ways);
    if (rank->home)
        gw_overlay_home_poll(rank->home);
    gw_time now = gw_loop_now(loop);
    while (gw_endpoint_poll(rank->endpoint, &happened, 1))
        gw_communicator_event(rank->comm, &happened, now);
    while (gw_communicator_poll(rank->comm, &event, now)) {
        if (event.kind == GW_COMMUNICATOR_WANTS)
            gw_ways_want(rank->ways, event.rank);
        rank->last = event.kind;
        rank->reason = event.reason;
        rank->has_ended |= event.kind != GW_COMMUNICATOR_WANTS;
        rank->done += event.kind == GW_COMMUNICATOR_DONE;
    }
}

/* Until these ranks, a bit each, have met the others or have failed. */
static inline void run(struct group *g, uint32_t awaited)
{
    uint32_t ended = 0;
    for (int i = 0; i < TURNS_MAX && (ended & awaited) != awaited; i++)
        for (int rank = 0; rank < RANKS; rank++) {
            if (g->ranks[rank].comm)
                turn(&g->ranks[rank]);
            ended |= (uint32_t)g->ranks[rank].has_ended << rank;
        }
    assert_int_equal(ended & awaited, awaited);
}

#endif
