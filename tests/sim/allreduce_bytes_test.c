/*
 * The bytes that an all-reduce of a tensor of U bytes moves over each host's link, against the
 * formulas of the literature (BytePS, OSDI 2020, section 2; ATP, NSDI 2021, section 2):
 *
 *   a server beside each of n workers   2 U (n - 1) / n out and in at each of them
 *   one server                          n U in and n U out at the server, U out and in at a worker
 *   switches that add up                U out and in at every host, one packet per fragment
 *
 * A pcap file tells what a link carried. Nothing is lost or sent again, so payload and packets
 * must be equal to the formulas, not only about as many.
 */
#include <stdio.h>
#include <unistd.h>

#include "sim_support.h"
#include "support.h"

#include "sim/sim_impl.h"
#include "wire/wire.h"

enum {
    FRAME_HEADERS = 14 + 20 + 8, /* Ethernet, IP, UDP */
    FILE_HEADER = 24,
    SNAP_MAX = 256,
    HOSTS_PER_LEAF = 32, /* in scenarios/allreduce.yaml */
    HEADER = 64,
    VALUES = 352,
    WORKERS_MAX = 8,
};

/* What of a job's values went over a link in one direction. */
struct load {
    uint64_t payload; /* bytes */
    uint64_t packets;
};

/* Of one host's link; job control apart. */
struct link_load {
    struct load out, in;
};

/* A run and the link of one host in it. */
struct observation {
    struct link_load link;
    struct gw_port_stats port; /* of the switch's end: all that the host receives */
    struct gw_job_result job;
};

static const uint32_t workers_of[] = {2, 4, 8};

/* Full fragments for 8 servers; a rest for any number of servers; less than a fragment for all. */
static const uint64_t sizes[] = {4ull * VALUES * 8 * 8, 100004, 4 * 13};

/* Adds a record of the file to the load of host's link; false at the end. */
static bool read_record(FILE *file, uint32_t host, struct link_load *link)
{
    uint32_t record[4]; /* seconds, nanoseconds, bytes kept, bytes on the wire */
    uint8_t frame[SNAP_MAX];
    struct gw_wire_hdr hdr;
    if (fread(record, sizeof(record), 1, file) != 1)
        return false;
    assert_in_range(record[2], FRAME_HEADERS, SNAP_MAX);
    assert_int_equal(fread(frame, record[2], 1, file), 1);
    uint32_t length = record[3] - FRAME_HEADERS;
    assert_int_equal(gw_wire_decode(frame + FRAME_HEADERS, length, &hdr), 0);
    assert_true(hdr.src == host || hdr.dst == host);
    assert_int_not_equal(hdr.kind, GW_WIRE_DATA);
    if (hdr.kind == GW_WIRE_GRAD || hdr.kind == GW_WIRE_PARAM) {
        struct load *load = hdr.src == host ? &link->out : &link->in;
        load->payload += length - GW_WIRE_AGG_SIZE;
        load->packets++;
    }
    return true;
}

static void read_capture(const char *path, uint32_t host, struct link_load *link)
{
    FILE *file = fopen(path, "rb");
    assert_non_null(file);
    assert_int_equal(fseek(file, FILE_HEADER, SEEK_SET), 0);
    *link = (struct link_load){.out = {0}};
    while (read_record(file, host, link))
        ;
    assert_true(feof(file));
    fclose(file);
}

/* One iteration, in which nothing was lost or sent again. */
static void observe(const char *set, uint32_t workers, uint64_t size, uint32_t host,
                    struct observation *seen)
{
    char path[GW_TEST_PATH_MAX];
    uint32_t leaf = host / HOSTS_PER_LEAF;
    struct gw_sim_options options = GW_TEST_SIM_OPTIONS(1);
    struct gw_test_sim run;
    gw_test_write_file(path, "");
    options.pcap_file = path;
    gw_test_sim_run(&run, &options, "scenarios/allreduce.yaml",
                    "workers=%u; size=%llu; %s; workload.values=%d; workload.window=64; "
                    "workload.window_initial=16; metrics.pcap=[leaf%u, host%u]",
                    workers, (unsigned long long)size, set, VALUES, leaf, host);
    assert_int_equal(gw_sim_jobs(run.sim, &seen->job, 1), 1);
    assert_int_equal(seen->job.completed, workers);
    assert_int_equal(seen->job.resent, 0);
    assert_int_equal(run.totals.retransmits, 0);
    assert_int_equal(run.totals.trims + run.totals.drops + run.totals.link_losses, 0);
    const struct gw_sim_node *sw =
        &run.sim->nodes[run.sim->place[run.scenario.topo.host_count + leaf]];
    seen->port = gw_switch_port_stats(sw->sw, (uint16_t)(host % HOSTS_PER_LEAF));
    gw_test_sim_close(&run);
    read_capture(path, host, &seen->link);
    unlink(path);
}

/* Workers are in two racks, a server that has a host of its own is behind those of the last. */
static uint32_t worker_host(uint32_t rank, uint32_t workers)
{
    uint32_t half = workers / 2;
    return rank < half ? rank : HOSTS_PER_LEAF + rank - half;
}

static uint32_t server_host(uint32_t workers)
{
    return HOSTS_PER_LEAF + workers / 2;
}

/* Elements of the tensor at server `i` of `servers`: as equal as they can be, the first have more.
 */
static uint64_t part_of(uint64_t elements, uint32_t i, uint32_t servers)
{
    return elements / servers + (i < elements % servers);
}

/* What a part of the tensor takes, `times` times. */
static struct load load_of(uint64_t elements, uint64_t times)
{
    return (struct load){.payload = 4 * elements * times,
                         .packets = (elements + VALUES - 1) / VALUES * times};
}

static void add_load(struct load *sum, struct load load)
{
    sum->payload += load.payload;
    sum->packets += load.packets;
}

static void expect_load(struct load load, struct load expected)
{
    assert_int_equal(load.payload, expected.payload);
    assert_int_equal(load.packets, expected.packets);
}

/* Every packet has one header, also those of job control, which have nothing else. */
static void expect_headers(const struct observation *seen)
{
    assert_true(seen->port.out_packets > seen->link.in.packets);
    assert_int_equal(seen->port.out_bytes, seen->link.in.payload + HEADER * seen->port.out_packets);
}

static void check_one_server(uint32_t n, uint64_t size)
{
    struct observation seen;
    observe("via=ps", n, size, server_host(n), &seen);
    expect_load(seen.link.in, load_of(size / 4, n));
    expect_load(seen.link.out, load_of(size / 4, n));
    assert_int_equal(seen.job.server_packets, seen.link.in.packets);
    assert_int_equal(seen.job.server_bytes, n * size + HEADER * seen.link.in.packets);
    expect_headers(&seen);
    for (uint32_t rank = 0; rank < n; rank++) {
        observe("via=ps", n, size, worker_host(rank, n), &seen);
        expect_load(seen.link.out, load_of(size / 4, 1));
        expect_load(seen.link.in, load_of(size / 4, 1));
        expect_headers(&seen);
    }
}

/*
 * A worker sends its gradients for the others' parts, and the sums of its part to the others; what
 * is for its own host stays there.
 */
static void check_servers_beside_workers(uint32_t n, uint64_t size)
{
    char set[128];
    snprintf(set, sizeof(set), "via=ps; workload.servers=%u; workload.colocated=yes", n);
    uint64_t all = 0;
    for (uint32_t rank = 0; rank < n; rank++) {
        struct observation seen;
        struct load expected = load_of(part_of(size / 4, rank, n), n - 1);
        for (uint32_t other = 0; other < n; other++)
            if (other != rank)
                add_load(&expected, load_of(part_of(size / 4, other, n), 1));
        observe(set, n, size, worker_host(rank, n), &seen);
        expect_load(seen.link.out, expected);
        expect_load(seen.link.in, expected);
        if (size % (4 * n) == 0)
            assert_int_equal(seen.link.out.payload, 2 * size * (n - 1) / n);
        expect_headers(&seen);
        all += seen.link.out.payload;
    }
    assert_int_equal(all, 2 * size * (n - 1));
}

static void check_switches(uint32_t n, uint64_t size)
{
    struct observation seen;
    struct load tensor = load_of(size / 4, 1);
    observe("via=ina", n, size, server_host(n), &seen);
    expect_load(seen.link.in, tensor);
    expect_load(seen.link.out, tensor);
    assert_int_equal(seen.job.fragments, tensor.packets);
    assert_int_equal(seen.job.aggregated, tensor.packets);
    assert_int_equal(seen.job.server_packets, tensor.packets);
    assert_int_equal(seen.job.server_bytes, size + HEADER * tensor.packets);
    expect_headers(&seen);
    for (uint32_t rank = 0; rank < n; rank++) {
        observe("via=ina", n, size, worker_host(rank, n), &seen);
        expect_load(seen.link.out, tensor);
        expect_load(seen.link.in, tensor);
        expect_headers(&seen);
    }
}

static void each_case(void (*check)(uint32_t n, uint64_t size))
{
    for (uint32_t w = 0; w < GW_COUNT_OF(workers_of); w++)
        for (uint32_t s = 0; s < GW_COUNT_OF(sizes); s++)
            check(workers_of[w], sizes[s]);
}

static void one_server__takes_and_sends_n_tensors(void **state)
{
    (void)state;
    each_case(check_one_server);
}

static void servers_beside_workers__move_as_much_as_a_ring(void **state)
{
    (void)state;
    each_case(check_servers_beside_workers);
}

static void switches__leave_one_tensor_on_every_link(void **state)
{
    (void)state;
    each_case(check_switches);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_server__takes_and_sends_n_tensors),
        cmocka_unit_test(servers_beside_workers__move_as_much_as_a_ring),
        cmocka_unit_test(switches__leave_one_tensor_on_every_link),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
