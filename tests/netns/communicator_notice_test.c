/*
 * How the ranks of a job without a server agree on the way in which its bursts are announced: in
 * one process, over loopback.
 */
#include "support.h"

#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "net/ranks/team.h"
#include "net/udp/sock.h"

enum {
    RANKS = 3,
    MTU = 1400,
    PEERS = 16,
    PKTS = 1024,
    ADDRESS = 4711, /* of rank 0 */
    JOB = 5,
    TURNS_MAX = 20000, /* of a millisecond at most: what has not happened by then does not */
};

/* The paper's path, which gives 37 packets or 8 units, and one that is six times as long. */
static const struct gw_notice_path narrow = {
    .rtt = 13300 * GW_US, .rate_bps = 100000000, .packet = 1500};
static const struct gw_notice_path long_ = {
    .rtt = 80 * GW_MS, .rate_bps = 100000000, .packet = 1500};

struct rank {
    struct gw_station *station;
    struct gw_team *comm;
    enum gw_team_event_kind last;
    enum gw_job_reason reason;
    bool has_ended; /* one way or another, meeting the others */
};

struct group {
    struct rank ranks[RANKS];
    struct gw_key key;
    struct gw_transport transport;
    char join[GW_SOCK_ADDR_NAME_MAX];
    uint16_t port;
};

static void open_group(struct group *g)
{
    struct gw_sock_addr addr;
    char error[GW_NET_ERROR_MAX];
    int fd;
    memset(g, 0, sizeof(*g));
    assert_int_equal(gw_key_setup(), 0);
    gw_key_from_text("secret", 6, &g->key);
    assert_int_equal(gw_sock_addr_parse("127.0.0.1", 0, &addr), 0);
    assert_int_equal(gw_sock_open_row(&addr, 1, 0, &fd, error), 0);
    gw_sock_close_row(&fd, 1);
    g->port = gw_sock_addr_port(&addr);
    gw_sock_addr_format(&addr, g->join, sizeof(g->join));
    assert_int_equal(gw_team_transport("smartt", "reps", false, &g->transport, error), 0);
}

static void open_rank(struct group *g, uint16_t number, uint8_t option,
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
        .accepts = true,
        .node_address = ADDRESS + number,
        .role = GW_ATTACH_HOST,
        .keys = &g->key,
        .key_count = 1,
    };
    assert_int_equal(gw_station_open(&station, &rank->station, error), 0);
    struct gw_team_cfg cfg = {
        .station = rank->station,
        .address = station.node_address,
        .job = JOB,
        .rank = number,
        .world = RANKS,
        .join = g->join,
        .mtu = MTU,
        .coll = (const struct gw_coll_ops *)gw_registry_find(&gw_coll_registry, "ring"),
        .transport = g->transport,
        .stall = 60 * GW_S,
        .notice = option,
        .notice_path = *path,
        .seed = 1,
    };
    assert_int_equal(gw_team_open(&cfg, &rank->comm, error), 0);
}

static void close_group(struct group *g)
{
    for (int i = 0; i < RANKS; i++) {
        if (!g->ranks[i].comm)
            continue;
        gw_station_close(g->ranks[i].station);
        gw_team_close(g->ranks[i].comm);
        gw_station_free(g->ranks[i].station);
    }
}

static void turn(struct rank *rank)
{
    struct gw_neighbour_event neighbour;
    struct gw_team_event event;
    char error[GW_NET_ERROR_MAX];
    struct gw_loop *loop = gw_station_loop(rank->station);
    gw_time until = gw_time_add(gw_loop_now(loop), GW_MS / 4);
    assert_int_equal(gw_station_turn(rank->station, until, error), 0);
    while (gw_station_poll(rank->station, &neighbour))
        gw_team_neighbour(rank->comm, &neighbour);
    while (gw_team_poll(rank->comm, &event, gw_loop_now(loop))) {
        rank->last = event.kind;
        rank->reason = event.reason;
        rank->has_ended = true;
    }
}

/* Until these ranks, a bit each, have met the others or have failed. */
static void run(struct group *g, uint32_t awaited)
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

/* Rank 0's path counts: there is one threshold. */
static void communicator__all_have_the_threshold_of_rank_0(void **state)
{
    (void)state;
    static const struct {
        uint8_t option, units;
    } cases[] = {{GW_NOTICE_OFF, 0}, {3, 3}, {GW_NOTICE_FORMULA, 8}, {GW_NOTICE_FORMULA + 1, 4}};
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        struct group g;
        open_group(&g);
        for (uint16_t rank = 0; rank < RANKS; rank++)
            open_rank(&g, rank, cases[i].option, rank ? &long_ : &narrow);
        run(&g, 7);
        for (uint32_t rank = 0; rank < RANKS; rank++) {
            assert_int_equal(g.ranks[rank].last, GW_TEAM_OPEN);
            assert_int_equal(gw_team_notice(g.ranks[rank].comm), cases[i].units);
        }
        close_group(&g);
    }
}

static void communicator__refuses_whoever_announces_differently(void **state)
{
    (void)state;
    struct group g;
    char expected[GW_TEAM_TEXT_MAX];
    open_group(&g);
    open_rank(&g, 0, GW_NOTICE_FORMULA, &narrow);
    open_rank(&g, 1, 8, &narrow); /* though the threshold would be the same */
    run(&g, 2);
    assert_int_equal(g.ranks[1].last, GW_TEAM_FAILED);
    assert_int_equal(g.ranks[1].reason, GW_JOB_NOTICE);
    snprintf(expected, sizeof(expected),
             "%s refuses us: it announces the bursts of the job differently", g.join);
    assert_string_equal(gw_team_text(g.ranks[1].comm), expected);
    assert_false(g.ranks[0].has_ended);
    close_group(&g);
}

/* All learn why there is no job. */
static void communicator__fails_without_a_threshold(void **state)
{
    (void)state;
    struct group g;
    open_group(&g);
    for (uint16_t rank = 0; rank < RANKS; rank++)
        open_rank(&g, rank, GW_NOTICE_FORMULA, &narrow);
    gw_team_set_notice_path(g.ranks[0].comm, &long_);
    run(&g, 7);
    for (uint32_t rank = 0; rank < RANKS; rank++) {
        assert_int_equal(g.ranks[rank].last, GW_TEAM_FAILED);
        assert_int_equal(g.ranks[rank].reason, GW_JOB_NOTICE);
        assert_string_equal(
            gw_team_text(g.ranks[rank].comm),
            "no threshold of at most 75 packets follows from the path of the job's bursts");
    }
    close_group(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(communicator__all_have_the_threshold_of_rank_0),
        cmocka_unit_test(communicator__refuses_whoever_announces_differently),
        cmocka_unit_test(communicator__fails_without_a_threshold),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
