/* The home of a job in the process of one of its ranks, which others may find before that rank. */
#include "support.h"

#include "base/error.h"
#include "net/memory/memory_datapath.h"
#include "net/roles/overlay_home.h"

enum {
    JOB = 7,
    WORLD = 2,
    OWN = 50,   /* address of the rank here */
    OTHER = 60, /* of another process */
};

struct fixture {
    struct gw_station *station;
    struct gw_overlay_home *home;
};

static void fixture_open(struct fixture *f)
{
    char error[GW_NET_ERROR_MAX];
    const struct gw_key key = {.id = 1};
    const struct gw_station_cfg station = {
        .datapath = &gw_datapath_memory,
        .address = "127.0.0.1",
        .entropies = 1,
        .packets = 256,
        .mtu = 1408,
        .peers_max = 4,
        .accepts = true,
        .node_address = 1,
        .role = GW_ATTACH_HOST,
        .keys = &key,
        .key_count = 1,
    };
    assert_int_equal(gw_station_open(&station, &f->station, error), 0);
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

static void fixture_close(struct fixture *f)
{
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
    const struct gw_overlay_rank come = {
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

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(overlay_home_join__behind_others),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
