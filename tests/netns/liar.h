/* A rank without a thread of its own: a test drives it, and it need not keep to any protocol. */
#ifndef GW_TESTS_LIAR_H
#define GW_TESTS_LIAR_H

#include "ranks_fixture.h"

#include "lib/io_impl.h"
#include "lib/options.h"

static inline struct gw_io *liar_open(int rank, int world)
{
    static struct gw_io io;
    struct gradwire_options options = options_of(rank);
    char error[GW_NET_ERROR_MAX];
    options.world = world;
    io.to_thread = io.to_app = -1;
    assert_int_equal(gw_options_plan(&options, &io.plan, error), 0);
    assert_int_equal(gw_key_setup(), 0);
    assert_int_equal(gw_io_open_job(&io, error), 0);
    return &io;
}

/* Takes a turn; true: the job is open. */
static inline bool liar_turn(struct gw_io *io)
{
    struct gw_neighbour_event neighbour;
    struct gw_communicator_event event = {.kind = GW_COMMUNICATOR_DONE};
    struct gw_event happened;
    char error[GW_NET_ERROR_MAX];
    bool is_open = false;
    gw_time now = gw_io_now(io);
    assert_int_equal(gw_station_turn(io->station, gw_time_add(now, GW_MS), error), 0);
    while (gw_station_poll(io->station, &neighbour))
        assert_true(gw_ways_neighbour(io->ways, &neighbour, error));
    gw_ways_turn(io->ways);
    while (gw_endpoint_poll(io->endpoint, &happened, 1))
        gw_communicator_event(io->comm, &happened, now);
    while (!is_open && gw_communicator_poll(io->comm, &event, now)) {
        is_open = event.kind == GW_COMMUNICATOR_OPEN;
        if (event.kind == GW_COMMUNICATOR_WANTS)
            gw_ways_want(io->ways, event.rank);
    }
    return is_open;
}

/* Waits until the job is open, as everybody does. */
static inline void liar_join(struct gw_io *io)
{
    while (!liar_turn(io))
        continue;
}

/* Waits until there is a way to the rank. */
static inline void liar_reach(struct gw_io *io, uint32_t rank)
{
    while (!gw_mesh_reaches(gw_communicator_mesh(io->comm), rank, true))
        liar_turn(io);
}

#endif
