/*
 * Daemons in a row: a process for each port, so that each has a core, and one that waits for them.
 *
 * They share nothing but the config. Whoever signals the first process signals all; if one of them
 * ends that was not asked to, the others are ended too, since no job that it served can go on.
 */
#define _GNU_SOURCE
#include "cli/daemon_impl.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/cli.h"

enum { CAUSE_MAX = 32 };

struct row {
    struct gw_daemon *daemon;
    pid_t pids[GW_DAEMON_ROW_MAX]; /* 0: it has ended */
    uint32_t count;                /* that run */
    bool is_ending;
    int status;
};

static void tell(struct row *row, int number)
{
    row->is_ending = true;
    for (uint32_t i = 0; i < row->daemon->row_count; i++)
        if (row->pids[i])
            kill(row->pids[i], number);
}

static void describe(int how, char text[CAUSE_MAX])
{
    if (WIFSIGNALED(how))
        snprintf(text, CAUSE_MAX, "by signal %d", WTERMSIG(how));
    else
        snprintf(text, CAUSE_MAX, "with status %d", WEXITSTATUS(how));
}

/* Takes note of those that have ended. */
static void reap(struct row *row)
{
    int how;
    pid_t pid;
    char cause[CAUSE_MAX];
    while ((pid = waitpid(-1, &how, WNOHANG)) > 0) {
        uint32_t i = 0;
        while (i < row->daemon->row_count && row->pids[i] != pid)
            i++;
        if (i == row->daemon->row_count)
            continue; /* a child that this process had under another name */
        row->pids[i] = 0;
        row->count--;
        int status = WIFEXITED(how) ? WEXITSTATUS(how) : GW_EXIT_FAILURE;
        row->status = row->status ? row->status : status;
        if (row->is_ending)
            continue;
        gw_daemon_listen_at(row->daemon, i);
        describe(how, cause);
        gw_complain("the %s at %s has ended (%s), so the others of %s end", row->daemon->kind->name,
                    gw_daemon_common(row->daemon)->listen, cause, row->daemon->row);
        row->status = status ? status : GW_EXIT_FAILURE;
        tell(row, SIGTERM);
        tell(row, SIGINT); /* the second signal: nobody waits for neighbours, who wait for all */
    }
}

/* In a child: dies with its parent, and has its signals from it alone, also those that come before
 * it waits for them. It may write to a terminal, whose foreground it has left. */
static void settle(struct gw_daemon *daemon, uint32_t number, pid_t parent)
{
    sigset_t ended;
    sigemptyset(&ended);
    sigaddset(&ended, SIGCHLD);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    setpgid(0, 0);
    signal(SIGTTOU, SIG_IGN);
    sigprocmask(SIG_UNBLOCK, &ended, NULL);
    if (getppid() != parent)
        _exit(GW_EXIT_FAILURE);
    gw_daemon_settle(daemon, number);
}

int gw_daemon_run_row(struct gw_daemon *daemon, int (*serve)(struct gw_daemon *daemon))
{
    struct row row = {.daemon = daemon};
    sigset_t set;
    const pid_t parent = getpid();
    if (daemon->row_count == 1) {
        gw_daemon_settle(daemon, 0);
        return serve(daemon);
    }
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    signal(SIGCHLD, SIG_DFL); /* whoever ignores it is not told */
    for (uint32_t i = 0; i < daemon->row_count && !row.status; i++) {
        row.pids[i] = fork();
        if (row.pids[i] == 0) {
            settle(daemon, i, parent);
            return serve(daemon);
        }
        if (row.pids[i] > 0) {
            row.count++;
            continue;
        }
        gw_complain("cannot start the %s: %s", daemon->kind->name, strerror(errno));
        row.pids[i] = 0;
        row.status = GW_EXIT_FAILURE;
        tell(&row, SIGTERM);
    }
    while (row.count) {
        int number = sigwaitinfo(&set, NULL);
        if (number == SIGCHLD)
            reap(&row);
        else if (number > 0)
            tell(&row, number);
    }
    return row.status;
}
