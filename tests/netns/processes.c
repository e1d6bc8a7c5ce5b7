/* Daemons and workers as processes; see processes.h. */
#define _GNU_SOURCE
#include "netns/processes.h"

#include "support.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stddef.h>
#include <stdio.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include "gradwire.h"
#include "net/clock.h"
#include "net/udp/sock.h"

enum {
    CHILDREN_MAX = 64,
    /* Below those that the kernel gives to whoever asks for any. */
    PORT_FIRST = 10000,
    PORT_COUNT = 20000,
    PORT_STEP = 64, /* between those of processes one after the other */
    /* The values of a tensor: multiples of 1/64 below 1, which sum without rounding. */
    VALUE_STEPS = 64,
    /* Times so much they are still exact, but the integers of a sum saturate. */
    OVERFLOWING = 32,
    COMPUTING_MS = 4, /* of rank 0 between two rounds */
};

static pid_t children[CHILDREN_MAX];
static struct gw_test_daemon *daemons[CHILDREN_MAX]; /* whose log a failure shows */

/* Time that is left of the guard, for poll(). */
static int left_ms(gw_time guard)
{
    gw_time now = gw_clock_now();
    return gw_time_before(now, guard) ? (int)((guard - now) / GW_MS) + 1 : 0;
}

static gw_time guard_from_now(void)
{
    return gw_clock_now() + GW_GUARD_MS * GW_MS;
}

static void remember(pid_t pid)
{
    for (uint32_t i = 0; i < CHILDREN_MAX; i++)
        if (children[i] == 0) {
            children[i] = pid;
            return;
        }
    fail_msg("more than %d processes", CHILDREN_MAX);
}

/* Waits for the end of a child; returns its status as of waitpid(). */
static int reap(pid_t pid)
{
    int status = 0, fd = pidfd_open(pid, 0);
    struct pollfd end = {.fd = fd, .events = POLLIN};
    assert_true(fd >= 0);
    int ended = poll(&end, 1, GW_GUARD_MS);
    close(fd);
    if (ended != 1)
        fail_msg("process %d does not end", (int)pid);
    assert_int_equal(waitpid(pid, &status, 0), pid);
    for (uint32_t i = 0; i < CHILDREN_MAX; i++)
        if (children[i] == pid)
            children[i] = 0;
    return status;
}

/* As fork(), for a child that dies with the test. */
static pid_t start_child(void)
{
    fflush(NULL);
    pid_t pid = fork();
    assert_true(pid >= 0);
    if (pid == 0)
        prctl(PR_SET_PDEATHSIG, SIGKILL);
    else
        remember(pid);
    return pid;
}

int gw_test_end_all(void **state)
{
    (void)state;
    for (uint32_t i = 0; i < CHILDREN_MAX; i++) {
        if (children[i] == 0)
            continue;
        kill(children[i], SIGKILL);
        waitpid(children[i], NULL, 0);
        children[i] = 0;
    }
    for (uint32_t i = 0; i < CHILDREN_MAX && daemons[i]; i++) {
        if (daemons[i]->pid)
            close(daemons[i]->log_fd);
        daemons[i]->pid = 0;
        unlink(daemons[i]->config);
        strcat(daemons[i]->config, ".sock");
        unlink(daemons[i]->config);
        daemons[i]->config[0] = '\0';
        daemons[i] = NULL;
    }
    return 0;
}

/* The log of every daemon, for whoever reads why the test failed. */
static void show_logs(void)
{
    for (uint32_t i = 0; i < CHILDREN_MAX; i++)
        if (daemons[i])
            print_error("--- %s at port %u\n%.*s", daemons[i]->kind, daemons[i]->port,
                        (int)daemons[i]->log_size, daemons[i]->log);
}

/*
 * Claims a port for the life of this process. A claim is a name among abstract sockets, of which
 * each network namespace has its own, as it has of ports; tests/support/ports.py does the same.
 */
static bool claim_port(uint16_t port)
{
    struct sockaddr_un name = {.sun_family = AF_UNIX};
    int length = snprintf(name.sun_path + 1, sizeof(name.sun_path) - 1, "gradwire-port-%u", port);
    int claim = socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0), probe;
    char error[GW_NET_ERROR_MAX];
    struct gw_sock_addr addr;
    assert_true(claim >= 0);
    assert_int_equal(gw_sock_addr_parse("127.0.0.1", port, &addr), 0);
    socklen_t size = (socklen_t)offsetof(struct sockaddr_un, sun_path) + 1 + (socklen_t)length;
    bool is_ours = bind(claim, (struct sockaddr *)&name, size) == 0 &&
                   gw_sock_open_row(&addr, 1, 0, &probe, error) == 0;
    close(is_ours ? probe : claim);
    return is_ours;
}

void gw_test_free_ports(uint16_t *ports, uint32_t count)
{
    static uint32_t tried;
    uint32_t found = 0;
    while (found < count && tried < PORT_COUNT) {
        uint32_t place = (uint32_t)getpid() * PORT_STEP + tried++;
        uint16_t port = (uint16_t)(PORT_FIRST + place % PORT_COUNT);
        if (claim_port(port))
            ports[found++] = port;
    }
    assert_int_equal(found, count);
}

/* Takes what the daemon has said; false: it has closed its log. */
static bool read_log(struct gw_test_daemon *daemon)
{
    size_t room = sizeof(daemon->log) - 1 - daemon->log_size;
    assert_true(room > 0);
    ssize_t got = read(daemon->log_fd, daemon->log + daemon->log_size, room);
    if (got > 0)
        daemon->log_size += (uint32_t)got;
    daemon->log[daemon->log_size] = '\0';
    return got > 0 || (got < 0 && errno == EAGAIN);
}

void gw_test_daemon_await(struct gw_test_daemon *daemon, const char *text)
{
    gw_time guard = guard_from_now();
    const char *found;
    while (!(found = strstr(daemon->log + daemon->log_seen, text))) {
        struct pollfd more = {.fd = daemon->log_fd, .events = POLLIN};
        bool is_late = poll(&more, 1, left_ms(guard)) != 1;
        if (is_late || !read_log(daemon)) {
            show_logs();
            fail_msg("the %s %s without saying '%s'", daemon->kind,
                     is_late ? "takes too long" : "has ended", text);
        }
    }
    daemon->log_seen = (uint32_t)(found + strlen(text) - daemon->log);
}

void gw_test_daemon_restart(struct gw_test_daemon *daemon)
{
    int pipes[2];
    assert_int_equal(pipe2(pipes, O_CLOEXEC), 0);
    daemon->log_size = daemon->log_seen = 0;
    daemon->log[0] = '\0';
    daemon->pid = start_child();
    if (daemon->pid == 0) {
        dup2(pipes[1], STDERR_FILENO);
        execl(GW_PROGRAM, GW_PROGRAM, daemon->kind, "--config", daemon->config, (char *)NULL);
        _exit(127);
    }
    close(pipes[1]);
    daemon->log_fd = pipes[0];
    assert_int_equal(fcntl(pipes[0], F_SETFL, O_NONBLOCK), 0);
    for (uint32_t i = 0; i < CHILDREN_MAX; i++)
        if (!daemons[i] || daemons[i] == daemon) {
            daemons[i] = daemon;
            break;
        }
    gw_test_daemon_await(daemon, "listening at");
}

void gw_test_daemon_start(struct gw_test_daemon *daemon, const char *kind, uint16_t port,
                          const char *more)
{
    char text[GW_DAEMON_CONFIG_MAX];
    daemon->kind = kind;
    daemon->port = port;
    if (daemon->config[0])
        unlink(daemon->config); /* of its last life */
    /* Ports of other tests may be the same in other namespaces, but paths are everybody's. */
    gw_test_write_file(daemon->config, "");
    snprintf(text, sizeof(text), "listen: 127.0.0.1:%u\nstatus: %s.sock\n%s", port, daemon->config,
             more);
    FILE *config = fopen(daemon->config, "w");
    assert_non_null(config);
    assert_true(fputs(text, config) >= 0);
    assert_int_equal(fclose(config), 0);
    gw_test_daemon_restart(daemon);
}

/* Sends the signal and returns the status as of waitpid(). */
static int end_daemon(struct gw_test_daemon *daemon, int signal)
{
    assert_int_equal(kill(daemon->pid, signal), 0);
    int status = reap(daemon->pid);
    read_log(daemon);
    close(daemon->log_fd);
    daemon->pid = 0;
    return status;
}

void gw_test_daemon_crash(struct gw_test_daemon *daemon)
{
    int status = end_daemon(daemon, SIGKILL);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
}

int gw_test_daemon_stop(struct gw_test_daemon *daemon)
{
    int status = end_daemon(daemon, SIGTERM);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

/* Reads a pipe to its end. */
static void read_all(int fd, char *text, gw_time guard)
{
    size_t used = 0;
    ssize_t got = 1;
    struct pollfd more = {.fd = fd, .events = POLLIN};
    while (got > 0) {
        assert_true(used < GW_DAEMON_LOG_MAX - 1);
        assert_int_equal(poll(&more, 1, left_ms(guard)), 1);
        got = read(fd, text + used, GW_DAEMON_LOG_MAX - 1 - used);
        used += got > 0 ? (size_t)got : 0;
    }
    text[used] = '\0';
    close(fd);
}

void gw_test_run(struct gw_test_run *run, const char *const *arguments)
{
    int out[2], err[2];
    const char *words[16] = {GW_PROGRAM};
    for (int i = 0; arguments[i]; i++) {
        assert_true(i + 2 < (int)GW_COUNT_OF(words));
        words[i + 1] = arguments[i];
    }
    assert_int_equal(pipe2(out, O_CLOEXEC), 0);
    assert_int_equal(pipe2(err, O_CLOEXEC), 0);
    pid_t pid = start_child();
    if (pid == 0) {
        dup2(out[1], STDOUT_FILENO);
        dup2(err[1], STDERR_FILENO);
        execv(GW_PROGRAM, (char *const *)(uintptr_t)words);
        _exit(127);
    }
    close(out[1]);
    close(err[1]);
    read_all(out[0], run->out, guard_from_now());
    read_all(err[0], run->err, guard_from_now());
    int status = reap(pid);
    assert_true(WIFEXITED(status));
    run->status = WEXITSTATUS(status);
}

json_t *gw_test_daemon_status(const struct gw_test_daemon *daemon)
{
    const char *const arguments[] = {daemon->kind, "--config", daemon->config,
                                     "--status",   "--json",   NULL};
    struct gw_test_run *run = malloc(sizeof(*run));
    json_error_t error;
    assert_non_null(run);
    gw_test_run(run, arguments);
    assert_int_equal(run->status, 0);
    json_t *status = json_loads(run->out, 0, &error);
    if (!status)
        fail_msg("--status: %s: %s", error.text, run->out);
    free(run);
    return status;
}

/* What a worker says to the test. */
struct word {
    uint32_t rounds;
    int32_t is_over, error;
    char text[256];
};

/* Element i > 0 of a tensor; element 0 says that this round is the last. */
static float value_of(const struct gw_test_worker_cfg *cfg, int rank, uint32_t round, uint32_t i)
{
    uint32_t steps = (7 * (uint32_t)rank + 3 * round + i) % VALUE_STEPS;
    return (float)(steps * (cfg->overflows ? OVERFLOWING : 1)) / VALUE_STEPS;
}

static bool is_right(const float *sums, const struct gw_test_worker_cfg *cfg, uint32_t round)
{
    for (uint32_t i = 1; i < cfg->count; i++) {
        float sum = 0;
        for (int rank = 0; rank < cfg->world; rank++)
            sum += value_of(cfg, rank, round, i);
        if (sums[i] != sum)
            return false;
    }
    return true;
}

/* Sums until the end; `word` is filled with how that came. */
static void sum_rounds(gradwire *job, const struct gw_test_worker_cfg *cfg, int control,
                       struct word *word)
{
    float *tensor = malloc(cfg->count * sizeof(*tensor)),
          *sums = malloc(cfg->count * sizeof(*sums));
    bool is_last = false;
    char told;
    while (tensor && sums && !is_last) {
        for (uint32_t i = 0; i < cfg->count; i++)
            tensor[i] = value_of(cfg, cfg->rank, word->rounds, i);
        /* The others wait for it in the middle of a round, and that is where a crash finds them. */
        if (cfg->rank == 0)
            poll(NULL, 0, COMPUTING_MS);
        tensor[0] = recv(control, &told, sizeof(told), MSG_DONTWAIT) == 1;
        word->error =
            gradwire_allreduce(job, tensor, sums, cfg->count, GRADWIRE_FLOAT32, GRADWIRE_SUM);
        if (word->error == GRADWIRE_OK && !is_right(sums, cfg, word->rounds))
            word->error = GW_TEST_WRONG_SUM;
        is_last = sums[0] != 0;
        if (word->error != GRADWIRE_OK)
            break; /* the last word says why */
        word->rounds++;
        (void)!send(control, word, sizeof(*word), MSG_DONTWAIT | MSG_NOSIGNAL);
    }
    free(tensor);
    free(sums);
}

static void work(const struct gw_test_worker_cfg *cfg, int control)
{
    char server[64], switch_[32], join[32];
    struct gradwire_options options;
    struct word word = {.rounds = 0};
    gradwire *job = NULL;
    int length = snprintf(server, sizeof(server), "127.0.0.1:%u", cfg->server);
    if (cfg->more_server)
        snprintf(server + length, sizeof(server) - (size_t)length, ",127.0.0.1:%u",
                 cfg->more_server);
    snprintf(switch_, sizeof(switch_), "127.0.0.1:%u", cfg->switch_);
    snprintf(join, sizeof(join), "127.0.0.1:%u", cfg->join);
    gradwire_options_init(&options, sizeof(options));
    options.job = cfg->job;
    options.rank = cfg->rank;
    options.world = cfg->world;
    options.server = cfg->join ? NULL : server;
    options.join = cfg->join ? join : NULL;
    options.via = cfg->join && !cfg->sums_in_switches ? GRADWIRE_VIA_RING : GRADWIRE_VIA_INA;
    options.switch_ = cfg->switch_ ? switch_ : NULL;
    options.key_file = cfg->key_file;
    options.announce = cfg->announce;
    options.signals = cfg->signals;
    options.multicast = cfg->multicast;
    options.deadline_ms = cfg->deadline_ms;
    options.threads = cfg->threads;
    word.error = gradwire_open(&options, &job);
    if (word.error == GRADWIRE_OK)
        sum_rounds(job, cfg, control, &word);
    if (word.error == GW_TEST_WRONG_SUM)
        snprintf(word.text, sizeof(word.text), "wrong sum in round %u", word.rounds);
    else
        snprintf(word.text, sizeof(word.text), "%s", word.error ? gradwire_last_error() : "");
    gradwire_close(job);
    word.is_over = 1;
    (void)!send(control, &word, sizeof(word), MSG_NOSIGNAL);
}

void gw_test_worker_start(struct gw_test_worker *worker, const struct gw_test_worker_cfg *cfg)
{
    int pair[2];
    assert_int_equal(socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, pair), 0);
    *worker = (struct gw_test_worker){.control = pair[0]};
    worker->pid = start_child();
    if (worker->pid == 0) {
        close(pair[0]);
        work(cfg, pair[1]);
        _exit(0);
    }
    close(pair[1]);
}

/* Takes one word. */
static void hear(struct gw_test_worker *worker)
{
    struct word word;
    if (recv(worker->control, &word, sizeof(word), 0) != sizeof(word)) {
        show_logs();
        fail_msg("worker %d has died after %u rounds", (int)worker->pid, worker->rounds);
    }
    worker->rounds = word.rounds;
    worker->is_over = word.is_over;
    worker->error = word.error;
    memcpy(worker->text, word.text, sizeof(worker->text));
}

/* Takes the words of all that are not over; false: none came before the guard. */
static bool hear_all(struct gw_test_worker *workers, uint32_t count, gw_time guard)
{
    struct pollfd more[CHILDREN_MAX];
    assert_true(count <= CHILDREN_MAX);
    for (uint32_t i = 0; i < count; i++)
        more[i] =
            (struct pollfd){.fd = workers[i].is_over ? -1 : workers[i].control, .events = POLLIN};
    bool has_come = poll(more, count, left_ms(guard)) > 0;
    for (uint32_t i = 0; i < count; i++)
        if (more[i].revents)
            hear(&workers[i]);
    return has_come;
}

static uint32_t fewest_rounds(const struct gw_test_worker *workers, uint32_t count)
{
    uint32_t rounds = UINT32_MAX;
    for (uint32_t i = 0; i < count; i++)
        rounds = workers[i].rounds < rounds ? workers[i].rounds : rounds;
    return rounds;
}

void gw_test_workers_await(struct gw_test_worker *workers, uint32_t count, uint32_t rounds)
{
    while (hear_all(workers, count, gw_clock_now()))
        continue; /* what they did earlier does not count */
    uint32_t until = fewest_rounds(workers, count) + rounds;
    gw_time guard = guard_from_now();
    while (fewest_rounds(workers, count) < until) {
        bool is_late = !hear_all(workers, count, guard);
        for (uint32_t i = 0; i < count; i++) {
            if (!is_late && !workers[i].is_over)
                continue;
            show_logs();
            fail_msg("worker %u: %u of %u rounds: %s", i, workers[i].rounds, until,
                     is_late ? "is stuck" : workers[i].text);
        }
    }
}

void gw_test_worker_join(struct gw_test_worker *worker)
{
    gw_time guard = guard_from_now();
    while (!worker->is_over)
        if (!hear_all(worker, 1, guard)) {
            show_logs();
            fail_msg("worker %d is stuck after %u rounds", (int)worker->pid, worker->rounds);
        }
    int status = reap(worker->pid);
    assert_true(WIFEXITED(status));
    assert_int_equal(WEXITSTATUS(status), 0);
    close(worker->control);
    worker->pid = 0;
}

void gw_test_workers_stop(struct gw_test_worker *workers, uint32_t count)
{
    assert_int_equal(send(workers[0].control, "", 1, MSG_NOSIGNAL), 1);
    for (uint32_t i = 0; i < count; i++) {
        gw_test_worker_join(&workers[i]);
        if (workers[i].error) {
            show_logs();
            fail_msg("worker %u: %s", i, workers[i].text);
        }
        assert_int_equal(workers[i].rounds, workers[0].rounds);
    }
}

void gw_test_worker_crash(struct gw_test_worker *worker)
{
    assert_int_equal(kill(worker->pid, SIGKILL), 0);
    int status = reap(worker->pid);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGKILL);
    close(worker->control);
    worker->pid = 0;
}
