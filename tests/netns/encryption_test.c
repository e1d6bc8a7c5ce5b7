/*
 * A job whose links are all listened to: what its ranks send through a switch and a server is on
 * the wire as it is in memory, unless all encrypt; and the results are right either way. Whoever
 * does not want the same is refused in one line.
 */
#define _GNU_SOURCE /* memmem(), unshare() */
#include "netns/processes.h"
#include "ranks_fixture.h"

#include <arpa/inet.h>
#include <errno.h>
#include <linux/if_packet.h>
#include <net/ethernet.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>

enum {
    RANKS = 2,
    COUNT = 4096, /* elements */
    ROOM = 64 << 20,
    FRAME_MAX = 1 << 16,
    LOOK_MS = 10,
    BYTES_MIN = 4 * COUNT * 4, /* that must be seen, at least: the job's own */
};

/* What ranks send, what they get, and what one of them tells the others, element for element. */
static const int32_t secrets[RANKS + 2] = {0x1a2b3c4d, 0x2b3c4d5e, 0x456789ab, 0x51ca7e55};
enum { SUM = RANKS, TOLD };

static struct gw_test_daemon top, server;
static char key_file[GW_TEST_PATH_MAX];
static uint16_t ports[2];

/* How often each secret was seen, four times in a row, as any tensor of it has them. */
struct sight {
    uint64_t bytes;
    uint32_t times[RANKS + 2];
};

static int listen_to_all(void)
{
    const struct sockaddr_ll everywhere = {.sll_family = AF_PACKET,
                                           .sll_protocol = htons(ETH_P_ALL),
                                           .sll_ifindex = (int)if_nametoindex("lo")};
    int fd = socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, htons(ETH_P_ALL));
    int room = ROOM;
    assert_true(fd >= 0);
    if (setsockopt(fd, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof(room)) != 0)
        assert_int_equal(setsockopt(fd, SOL_SOCKET, SO_RCVBUF, &room, sizeof(room)), 0);
    assert_int_equal(bind(fd, (const struct sockaddr *)&everywhere, sizeof(everywhere)), 0);
    return fd;
}

static void look(int fd, struct sight *sight)
{
    static uint8_t frame[FRAME_MAX];
    ssize_t size;
    while ((size = recv(fd, frame, sizeof(frame), 0)) > 0) {
        sight->bytes += (uint64_t)size;
        for (int i = 0; i < RANKS + 2; i++) {
            const int32_t row[4] = {secrets[i], secrets[i], secrets[i], secrets[i]};
            sight->times[i] += memmem(frame, (size_t)size, row, sizeof(row)) != NULL;
        }
    }
    assert_int_equal(errno, EAGAIN);
}

static int shares_secrets(gradwire *job, int rank)
{
    static int32_t x[COUNT];
    for (int i = 0; i < COUNT; i++)
        x[i] = secrets[rank];
    CHECK(gradwire_allreduce(job, x, x, COUNT, GRADWIRE_INT32, GRADWIRE_SUM) == 0);
    for (int i = 0; i < COUNT; i++)
        CHECK(x[i] == secrets[SUM]);
    for (int i = 0; i < COUNT; i++)
        x[i] = rank == 0 ? secrets[TOLD] : 0;
    CHECK(gradwire_broadcast(job, x, COUNT, GRADWIRE_INT32, 0) == 0);
    for (int i = 0; i < COUNT; i++)
        CHECK(x[i] == secrets[TOLD]);
    return 0;
}

static struct gradwire_options options_at_switch(int rank, char at_switch[32], char at_server[32])
{
    struct gradwire_options options;
    gradwire_options_init(&options, sizeof(options));
    snprintf(at_switch, 32, "127.0.0.1:%u", ports[0]);
    snprintf(at_server, 32, "127.0.0.1:%u", ports[1]);
    options.rank = rank;
    options.world = RANKS;
    options.switch_ = at_switch;
    options.server = at_server;
    options.key_file = key_file;
    options.deadline_ms = 20000;
    return options;
}

static void start_fabric(const char *more)
{
    char text[GW_DAEMON_CONFIG_MAX];
    gw_test_free_ports(ports, GW_COUNT_OF(ports));
    gw_test_write_file(key_file, "open sesame\n");
    snprintf(text, sizeof(text), "switch_keys: [%.128s]\nkey_files: [%.128s]\n%s", key_file,
             key_file, more);
    gw_test_daemon_start(&top, "switch", ports[0], text);
    snprintf(text, sizeof(text),
             "switch: 127.0.0.1:%u\nswitch_keys: [%.128s]\n"
             "key_files: [%.128s]\n%s",
             ports[0], key_file, key_file, more);
    gw_test_daemon_start(&server, "server", ports[1], text);
    gw_test_daemon_await(&server, ": up");
}

static void stop_fabric(void)
{
    assert_int_equal(gw_test_daemon_stop(&server), 0);
    assert_int_equal(gw_test_daemon_stop(&top), 0);
    unlink(key_file);
}

/* Runs the job, and tells what has crossed the links. */
static struct sight watch_job(bool encrypts)
{
    struct sight sight = {0};
    pid_t pids[RANKS];
    int fd = listen_to_all();
    for (int rank = 0; rank < RANKS; rank++) {
        char at_switch[32], at_server[32];
        struct gradwire_options options = options_at_switch(rank, at_switch, at_server);
        options.encrypt = encrypts;
        pids[rank] = start_rank(&options, shares_secrets);
    }
    for (int rank = 0; rank < RANKS; rank++) {
        int status;
        pid_t pid;
        while ((pid = waitpid(pids[rank], &status, WNOHANG)) == 0) {
            poll(&(struct pollfd){.fd = fd, .events = POLLIN}, 1, LOOK_MS);
            look(fd, &sight);
        }
        assert_int_equal(pid, pids[rank]);
        assert_true(WIFEXITED(status));
        assert_int_equal(WEXITSTATUS(status), 0);
    }
    look(fd, &sight);
    struct tpacket_stats stats;
    socklen_t size = sizeof(stats);
    assert_int_equal(getsockopt(fd, SOL_PACKET, PACKET_STATISTICS, &stats, &size), 0);
    assert_int_equal(stats.tp_drops, 0); /* we have seen all */
    close(fd);
    assert_true(sight.bytes >= BYTES_MIN);
    return sight;
}

/* One of them wants something else than the fabric. */
static void assert_refused(bool encrypts, bool authenticates)
{
    char at_switch[32], at_server[32];
    gradwire *job;
    struct gradwire_options options = options_at_switch(0, at_switch, at_server);
    options.encrypt = encrypts;
    options.authenticate = authenticates;
    assert_int_equal(gradwire_open(&options, &job), GRADWIRE_ERR_PEER);
    assert_non_null(
        strstr(gradwire_last_error(), "one of us encrypts packets, the other does not"));
    assert_null(strchr(gradwire_last_error(), '\n'));
}

static void encryption__hides_what_crosses_the_links(void **state)
{
    (void)state;
    start_fabric("");
    struct sight plain = watch_job(false);
    assert_refused(true, false);
    stop_fabric();
    start_fabric("encrypt: yes\n");
    struct sight hidden = watch_job(true);
    assert_refused(false, false);
    assert_refused(false, true);
    stop_fabric();
    for (int i = 0; i < RANKS + 2; i++) {
        assert_true(plain.times[i] > 0); /* so we would see it */
        assert_int_equal(hidden.times[i], 0);
    }
}

/* A network of our own, with nothing in it but lo. */
static int move_out(void **state)
{
    (void)state;
    struct ifreq lo = {.ifr_name = "lo"};
    assert_int_equal(unshare(CLONE_NEWNET | (geteuid() == 0 ? 0 : CLONE_NEWUSER)), 0);
    int fd = socket(AF_INET, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    assert_true(fd >= 0);
    assert_int_equal(ioctl(fd, SIOCGIFFLAGS, &lo), 0);
    lo.ifr_flags |= IFF_UP;
    assert_int_equal(ioctl(fd, SIOCSIFFLAGS, &lo), 0);
    close(fd);
    return 0;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(encryption__hides_what_crosses_the_links, gw_test_end_all),
    };
    return cmocka_run_group_tests(tests, move_out, NULL);
}
