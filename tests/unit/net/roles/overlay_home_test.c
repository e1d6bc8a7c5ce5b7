/*
 * The home of a job: in the process of one of its ranks, which others may find before that rank;
 * and as others see it, who attach to it over a network that is memory.
 */
#include "support.h"

#include "base/error.h"
#include "net/memory/memory_datapath.h"
#include "net/roles/overlay_home.h"

enum {
    JOB = 7,
    WORLD = 2,
    OWN = 50,   /* address of the rank here */
    OTHER = 60, /* of another process */
    PEERS = 8,
    GUESTS_MAX = 4,
    TURNS_MAX = 100000,
};

static const struct gw_key key = {.id = 1};

/* A process that attaches to the home as a rank. */
struct guest {
    struct gw_station *station;
    bool is_up, is_refused;
    enum gw_attach_reason reason;
};

struct fixture {
    struct gw_station *station;
    struct gw_overlay_home *home;
    struct guest guests[GUESTS_MAX];
};

static struct gw_station *open_station(uint32_t address)
{
    char error[GW_NET_ERROR_MAX];
    struct gw_station *station = NULL;
    struct gw_sock_addr group;
    assert_int_equal(gw_sock_addr_parse("239.1.2.3", 4794, &group), 0);
    const struct gw_station_cfg cfg = {
        .datapath = &gw_datapath_memory,
        .address = "127.0.0.1",
        .entropies = 1,
        .packets = 256,
        .mtu = 1408,
        .peers_max = PEERS,
        .accepts = true,
        .node_address = address,
        .role = GW_ATTACH_HOST,
        .keys = &key,
        .key_count = 1,
        .group = group,
        .groups = 1,
    };
    assert_int_equal(gw_station_open(&cfg, &station, error), 0);
    return station;
}

static void fixture_open(struct fixture *f)
{
    *f = (struct fixture){.station = open_station(1)};
    const struct gw_overlay_home_cfg home = {
        .station = f->station,
        .server_address = 1,
        .switch_address = 2,
        .jobs_max = 1,
        .ranks_max = WORLD,
        .stall = GW_S,
        .mtu = 1408,
        .values = 352,
        .window = 64,
    };
    assert_int_equal(gw_overlay_home_open(&home, &f->home), 0);
}

/* It tells the home, and ends. */
static void close_guest(struct guest *guest)
{
    gw_station_close(guest->station);
    gw_station_free(guest->station);
    *guest = (struct guest){.station = NULL};
}

static void fixture_close(struct fixture *f)
{
    for (int i = 0; i < GUESTS_MAX; i++)
        if (f->guests[i].station)
            close_guest(&f->guests[i]);
    gw_station_close(f->station);
    gw_overlay_home_close(f->home);
    gw_station_free(f->station);
}

/* Another process has come first, and says of itself what it likes. */
static int join_behind(uint16_t world, uint16_t rank, uint8_t notice)
{
    struct fixture f;
    fixture_open(&f);
    struct gw_overlay_server *server = gw_overlay_home_server(f.home);
    const struct gw_overlay_job job = {
        .job = JOB, .world = world, .values = 352, .window = 64, .is_home = true};
    const struct gw_overlay_links links = {.hdr = 80, .mtu = 1408};
    const struct gw_registrar_rank come = {
        .place = {.address = OTHER},
        .rank = rank,
        .notice = notice,
        .path = gw_overlay_path(&links, 0, GW_OVERLAY_RATE_BPS),
    };
    const struct gw_greeting own = {
        .job = JOB, .world = WORLD, .address = OWN, .wants_table = true};
    assert_int_equal(gw_overlay_server_add(server, &job), 0);
    assert_int_equal(gw_overlay_server_come(server, JOB, &come, 0), GW_JOB_OK);
    int code = gw_overlay_home_join(f.home, (struct gw_loop_port){0, 0}, OWN, &own);
    fixture_close(&f);
    return code;
}

static void overlay_home_join__behind_others(void **state)
{
    (void)state;
    assert_int_equal(join_behind(WORLD, 1, 0), GW_OK);
    assert_int_equal(join_behind(WORLD, 0, 0), GW_ERR_INVALID);
    assert_int_equal(join_behind(WORLD, 1, 1), GW_ERR_INVALID);
    assert_int_equal(join_behind(WORLD + 1, 1, 0), GW_ERR_INVALID);
}

static void open_guest_as(struct fixture *f, int number, uint32_t address, uint16_t rank,
                          bool has_met)
{
    char error[GW_NET_ERROR_MAX], name[GW_SOCK_ADDR_NAME_MAX];
    const struct gw_greeting greeting = {
        .job = gw_key_job(&key, "job"),
        .world = WORLD,
        .rank = rank,
        .is_direct = true,
        .wants_table = true,
        .was_seated = has_met,
        .table = has_met ? 4711 : 0,
    };
    f->guests[number] = (struct guest){.station = open_station(address)};
    gw_sock_addr_format(gw_datapath_address(gw_station_datapath(f->station)), name, sizeof(name));
    assert_true(gw_station_dial(f->guests[number].station, name, &greeting, error) >= 0);
}

static void open_guest(struct fixture *f, int number, uint32_t address, uint16_t rank)
{
    open_guest_as(f, number, address, rank, false);
}

static void turn(struct gw_station *station)
{
    char error[GW_NET_ERROR_MAX];
    gw_time now = gw_loop_now(gw_station_loop(station));
    assert_int_equal(gw_station_turn(station, now, error), 0);
}

static void turn_guest(struct guest *guest)
{
    struct gw_neighbour_event event;
    turn(guest->station);
    while (gw_station_poll(guest->station, &event)) {
        guest->is_up = event.kind == GW_NEIGHBOUR_UP;
        guest->is_refused = event.kind == GW_NEIGHBOUR_REFUSED;
        guest->reason = (enum gw_attach_reason)event.said.reason;
    }
}

/* Lets everybody go on until that is true, or for ever as good as. */
static void await(struct fixture *f, const bool *is_true)
{
    char why[GW_NET_ERROR_MAX];
    struct gw_neighbour_event event;
    for (int turns = 0; turns < TURNS_MAX && !*is_true; turns++) {
        turn(f->station);
        while (gw_station_poll(f->station, &event))
            gw_overlay_home_neighbour(f->home, &event, why);
        for (int i = 0; i < GUESTS_MAX; i++)
            if (f->guests[i].station)
                turn_guest(&f->guests[i]);
    }
    assert_true(*is_true);
}

/* One that the others have given up speaks again; and one that has not heard that the job is over,
 * when its rank is another's in the next. */
static void overlay_home__tells_whose_job_is_over(void **state)
{
    struct fixture f;
    (void)state;
    fixture_open(&f);
    open_guest(&f, 0, OTHER, 0);
    open_guest(&f, 1, OTHER + 1, 1);
    await(&f, &f.guests[0].is_up);
    await(&f, &f.guests[1].is_up);
    close_guest(&f.guests[1]);
    open_guest(&f, 1, OTHER + 1, 1);
    await(&f, &f.guests[1].is_refused);
    assert_int_equal(f.guests[1].reason, GW_ATTACH_OVER);
    assert_true(f.guests[0].is_up);
    open_guest(&f, 2, OTHER + 2, 0);
    await(&f, &f.guests[0].is_refused);
    assert_int_equal(f.guests[0].reason, GW_ATTACH_OVER);
    assert_true(f.guests[2].is_up);
    fixture_close(&f);
}

/* One that has met others comes to a home that has restarted, where another process is before it.
 */
static void overlay_home__tells_whose_job_was_at_another_home(void **state)
{
    struct fixture f;
    (void)state;
    fixture_open(&f);
    open_guest(&f, 0, OTHER, 0);
    await(&f, &f.guests[0].is_up);
    open_guest_as(&f, 1, OTHER + 1, 1, true);
    await(&f, &f.guests[1].is_refused);
    assert_int_equal(f.guests[1].reason, GW_ATTACH_REPLACED);
    open_guest(&f, 2, OTHER + 2, 1);
    await(&f, &f.guests[2].is_up);
    fixture_close(&f);
}

/* The system is not even asked for a way to a group, which memory cannot take. */
static void station__has_no_groups_in_memory(void **state)
{
    (void)state;
    uint16_t first;
    struct fixture f;
    fixture_open(&f);
    assert_int_equal(gw_station_groups(f.station, &first), 0);
    fixture_close(&f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(station__has_no_groups_in_memory),
        cmocka_unit_test(overlay_home_join__behind_others),
        cmocka_unit_test(overlay_home__tells_whose_job_is_over),
        cmocka_unit_test(overlay_home__tells_whose_job_was_at_another_home),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
