/* Thresholds of announced bursts. */
#include "support.h"

#include "base/error.h"
#include "core/notice.h"

enum {
    HALVINGS = GW_NOTICE_OPTIONS - GW_NOTICE_FORMULA, /* ratios that an option can say */
    PATHS = 4,
};

/* The paper's evaluation (section 4): 100 Mb/s, an RTT of 13.3 ms, packets of 1500 bytes. */
static const struct gw_notice_path paper = {
    .rtt = 13300 * GW_US, .rate_bps = 100000000, .packet = 1500};

/* 13.3 ms x 100 Mb/s / (3 x 12000 bit) is 36.94. */
static void notice_formula__is_the_papers_37_packets(void **state)
{
    (void)state;
    assert_int_equal(gw_notice_formula(&paper, 0), 37);
    assert_int_equal(gw_notice_formula(&paper, 1), 19);
    assert_int_equal(gw_notice_formula(&paper, 2), 10);
    assert_int_equal(gw_notice_formula(&paper, 3), 5);
}

static void notice_units__round_up_to_five_packets(void **state)
{
    (void)state;
    static const uint8_t packets[] = {40, 20, 10, 5, 5, 5};
    for (uint8_t i = 0; i < GW_COUNT_OF(packets); i++) {
        uint8_t units = 0;
        assert_int_equal(gw_notice_units(GW_NOTICE_FORMULA + i, &paper, &units), GW_OK);
        assert_int_equal(GW_NOTICE_STEP * units, packets[i]);
    }
}

/* Whatever the path is, even when nothing is known of it. */
static void notice_units__are_the_option_when_it_is_a_threshold(void **state)
{
    (void)state;
    struct gw_notice_path unknown = {.rtt = 0};
    for (uint8_t option = 0; option < GW_NOTICE_FORMULA; option++) {
        uint8_t units = 99;
        assert_int_equal(gw_notice_units(option, &unknown, &units), GW_OK);
        assert_int_equal(units, option);
    }
}

/* One packet takes 120 us of the paper's link; its multiples by 3 x 75 are the border. */
static void notice_units__refuse_more_than_75_packets(void **state)
{
    (void)state;
    struct gw_notice_path path = paper;
    uint8_t units = 0;
    path.rtt = 3 * 75 * 120 * GW_US;
    assert_int_equal(gw_notice_formula(&path, 0), 75);
    assert_int_equal(gw_notice_units(GW_NOTICE_FORMULA, &path, &units), GW_OK);
    assert_int_equal(units, GW_NOTICE_UNITS_MAX);
    path.rtt++;
    assert_int_equal(gw_notice_formula(&path, 0), 76);
    assert_int_equal(gw_notice_units(GW_NOTICE_FORMULA, &path, &units), GW_ERR_RANGE);
    assert_int_equal(gw_notice_units(GW_NOTICE_FORMULA + 1, &path, &units), GW_OK);
    assert_int_equal(units, 8); /* 38 packets */
}

/*
 * Wide and long, or narrow and short: compared with 128 bits. The picosecond to which the time of
 * a packet is rounded moves the result by its share of that time, and the ceiling by one more.
 */
static void notice_formula__fits_every_path_and_ratio(void **state)
{
    (void)state;
    static const struct gw_notice_path paths[PATHS] = {
        {.rtt = GW_S, .rate_bps = UINT64_C(10000000000000), .packet = 64},
        {.rtt = GW_S, .rate_bps = UINT64_C(10000000000000), .packet = 1500},
        {.rtt = 100 * GW_S, .rate_bps = 100000, .packet = 9000},
        {.rtt = 1, .rate_bps = UINT64_C(10000000000000), .packet = 1500},
    };
    for (int i = 0; i < PATHS; i++)
        for (uint32_t halvings = 0; halvings < HALVINGS; halvings++) {
            const struct gw_notice_path *path = &paths[i];
            unsigned __int128 bits = (unsigned __int128)path->rtt * path->rate_bps / GW_S;
            unsigned __int128 exact = bits / (24 * path->packet) >> halvings;
            uint64_t slack = (uint64_t)(exact * path->rate_bps / (8 * GW_S * path->packet) + 1);
            uint32_t packets = gw_notice_formula(path, halvings);
            uint8_t units = 99;
            uint64_t low = exact > slack ? (uint64_t)exact - slack : 0;
            assert_in_range(packets, low < UINT32_MAX ? low : UINT32_MAX, (uint64_t)exact + slack);
            assert_int_equal(gw_notice_units((uint8_t)(GW_NOTICE_FORMULA + halvings), path, &units),
                             packets > 75 ? GW_ERR_RANGE : GW_OK);
            if (packets <= 75)
                assert_in_range(units, 1, GW_NOTICE_UNITS_MAX);
        }
}

/* Nothing to wait for: still a threshold, which says that there is one. */
static void notice_units__are_never_none_for_a_formula(void **state)
{
    (void)state;
    struct gw_notice_path path = paper;
    path.rtt = 0;
    for (uint8_t i = 0; i < HALVINGS; i++) {
        uint8_t units = 0;
        assert_int_equal(gw_notice_units(GW_NOTICE_FORMULA + i, &path, &units), GW_OK);
        assert_int_equal(units, 1);
    }
}

static void notice_parse__reads_what_people_write(void **state)
{
    static const struct {
        const char *text;
        int error;
        uint8_t option;
    } cases[] = {
        {"no", GW_OK, GW_NOTICE_OFF},
        {"off", GW_OK, GW_NOTICE_OFF},
        {"5", GW_OK, 1},
        {"75", GW_OK, 15},
        {"1/1", GW_OK, GW_NOTICE_FORMULA},
        {"1/4", GW_OK, GW_NOTICE_FORMULA + 2},
        {"1/32768", GW_OK, GW_NOTICE_FORMULA + 15},
        {"0", GW_ERR_RANGE, 99},
        {"7", GW_ERR_RANGE, 99},
        {"80", GW_ERR_RANGE, 99},
        {"5000000000000000000000", GW_ERR_INVALID, 99},
        {"1/0", GW_ERR_RANGE, 99},
        {"1/3", GW_ERR_RANGE, 99},
        {"1/65536", GW_ERR_RANGE, 99},
        {"1/", GW_ERR_INVALID, 99},
        {"2/4", GW_ERR_INVALID, 99},
        {"yes", GW_ERR_INVALID, 99},
        {"", GW_ERR_INVALID, 99},
    };
    (void)state;
    for (size_t i = 0; i < GW_COUNT_OF(cases); i++) {
        uint8_t option = 99;
        assert_int_equal(gw_notice_parse(cases[i].text, &option), cases[i].error);
        assert_int_equal(option, cases[i].option);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(notice_formula__is_the_papers_37_packets),
        cmocka_unit_test(notice_units__round_up_to_five_packets),
        cmocka_unit_test(notice_units__are_the_option_when_it_is_a_threshold),
        cmocka_unit_test(notice_units__refuse_more_than_75_packets),
        cmocka_unit_test(notice_formula__fits_every_path_and_ratio),
        cmocka_unit_test(notice_units__are_never_none_for_a_formula),
        cmocka_unit_test(notice_parse__reads_what_people_write),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
