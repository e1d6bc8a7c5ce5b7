/* --pcap: a file that readers of the format accept, with every packet of the link and no other. */
#include <arpa/inet.h>
#include <stdio.h>
#include <unistd.h>

#include "sim_support.h"
#include "support.h"

#include "base/error.h"
#include "sim/sim_impl.h"
#include "wire/wire.h"

enum {
    ETHERNET = 14,
    IP = 20,
    UDP = 8,
    HEADERS = ETHERNET + IP + UDP,
    SNAP_MAX = 256,
};

static const char scenario[] = "topology: {kind: star, hosts: 4}\n"
                               "workload: {kind: incast, degree: 3, size: 300KiB}\n"
                               "queue: {capacity: 20KiB}\n"
                               "metrics: {pcap: [sw0, host0]}\n";

struct file_header {
    uint32_t magic;
    uint16_t major, minor;
    uint32_t zone, accuracy, snap, link_type;
};

struct record_header {
    uint32_t seconds, nanoseconds, kept, on_wire;
};

static uint32_t sum_words(const uint8_t *bytes, uint32_t count)
{
    uint32_t sum = 0;
    for (uint32_t i = 0; i < count; i += 2)
        sum += (uint32_t)bytes[i] << 8 | bytes[i + 1];
    return (sum & 0xffff) + (sum >> 16);
}

/* Addresses, lengths and checksum of one frame; returns true when host 0 sent it. */
static bool check_frame(const uint8_t *frame, const struct record_header *record)
{
    const uint8_t *ip = frame + ETHERNET, *udp = ip + IP;
    assert_int_equal(frame[12] << 8 | frame[13], 0x0800);
    assert_int_equal(ip[0], 0x45);
    assert_int_equal(ip[9], 17);
    assert_int_equal((ip[2] << 8 | ip[3]) + ETHERNET, record->on_wire);
    assert_int_equal(sum_words(ip, IP), 0xffff);
    assert_int_equal((udp[4] << 8 | udp[5]) + IP + ETHERNET, record->on_wire);
    assert_int_equal(ip[12], 10);
    assert_int_equal(ip[16], 10);
    bool sent = ip[15] == 0;
    assert_true(sent || ip[19] == 0);
    assert_true(ip[15] < 4 && ip[19] < 4 && ip[15] != ip[19]);
    return sent;
}

/* Packets that host 0 and its port of the switch sent. */
static void count_sent(const struct gw_test_sim *run, uint64_t *host, uint64_t *port)
{
    const struct gw_sim *sim = run->sim;
    const struct gw_endpoint_stats *stats = gw_endpoint_stats(sim->nodes[sim->place[0]].endpoint);
    *host = stats->data_sent + stats->acks_sent + stats->nacks_sent;
    *port = gw_switch_port_stats(sim->nodes[sim->place[4]].sw, 0).out_packets;
}

static void capture__holds_every_packet_of_the_link(void **state)
{
    (void)state;
    char path[GW_TEST_PATH_MAX];
    struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
    gw_test_write_file(path, "");
    options.pcap_file = path;
    struct gw_test_sim run;
    gw_test_sim_run(&run, &options, scenario, "%s", "");
    assert_true(run.totals.trims > 0);

    struct file_header header;
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fread(&header, sizeof(header), 1, file), 1);
    assert_true(header.magic == 0xa1b23c4d); /* nanoseconds, in this machine's byte order */
    assert_int_equal(header.major, 2);
    assert_int_equal(header.minor, 4);
    assert_int_equal(header.link_type, 1);
    assert_true(header.snap <= SNAP_MAX);

    struct record_header record;
    uint8_t frame[SNAP_MAX];
    uint64_t sent[2] = {0}, last = 0;
    while (fread(&record, sizeof(record), 1, file) == 1) {
        assert_true(record.kept <= header.snap && record.kept <= record.on_wire);
        assert_true(record.kept >= HEADERS && record.nanoseconds < 1000000000);
        assert_int_equal(fread(frame, record.kept, 1, file), 1);
        uint64_t at = record.seconds * UINT64_C(1000000000) + record.nanoseconds;
        assert_true(at >= last && at <= run.totals.end / GW_NS);
        last = at;
        sent[check_frame(frame, &record)]++;
    }
    assert_true(feof(file));
    fclose(file);
    unlink(path);

    uint64_t by_host, by_port;
    count_sent(&run, &by_host, &by_port);
    assert_true(sent[true] == by_host && sent[false] == by_port);
    assert_true(by_host > 200 && by_port > 200);
    gw_test_sim_close(&run);
}

static void capture__leaves_the_run_alone(void **state)
{
    (void)state;
    char path[GW_TEST_PATH_MAX];
    struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
    struct gw_test_sim with, without;
    gw_test_sim_run(&without, &options, scenario, "%s", "");
    gw_test_write_file(path, "");
    options.pcap_file = path;
    gw_test_sim_run(&with, &options, scenario, "%s", "");
    unlink(path);
    assert_true(with.totals.trace_hash == without.totals.trace_hash);
    gw_test_sim_close(&with);
    gw_test_sim_close(&without);
}

static void capture__refuses_a_file_that_cannot_be_made(void **state)
{
    (void)state;
    const struct gw_sim_options options = {
        .seed = 1, .threads = 1, .pcap_file = "/nowhere/at/all.pcap"};
    char why[GW_WHY_MAX] = "", path[GW_TEST_PATH_MAX];
    struct gw_scenario loaded;
    struct gw_sim *sim = NULL;
    gw_test_write_file(path, scenario);
    assert_int_equal(gw_scenario_load(&loaded, path, NULL, 0, why), 0);
    unlink(path);
    assert_int_equal(gw_sim_open(&sim, &loaded, &options, why), GW_ERR_SYSTEM);
    assert_null(sim);
    assert_string_equal(why, "/nowhere/at/all.pcap: No such file or directory");
    gw_scenario_free(&loaded);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(capture__holds_every_packet_of_the_link),
        cmocka_unit_test(capture__leaves_the_run_alone),
        cmocka_unit_test(capture__refuses_a_file_that_cannot_be_made),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
