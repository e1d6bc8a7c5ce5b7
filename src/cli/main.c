/* The gradwire program: finds the command and runs it. */
#include <argp.h>
#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/assert.h"
#include "cli/cli.h"

static int cmd_version(int argc, char **argv);
static int cmd_help(int argc, char **argv);

static const struct command {
    const char *name;
    int (*run)(int argc, char **argv);
    const char *summary;
} commands[] = {
    {"allreduce", gw_cmd_allreduce, "sum the tensors of .npy files"},
    {"bench", gw_cmd_bench, "sum random tensors over workers, check and time it"},
    {"check", gw_cmd_check, "is this machine ready for the datapath?"},
    {"model", gw_cmd_model, "print the layers of a neural network"},
    {"sim", gw_cmd_sim, "run a scenario in the packet-level simulator"},
    {"switch", gw_cmd_switch, "add up gradients on their way: a daemon"},
    {"server", gw_cmd_server, "complete the sums of jobs: a daemon"},
    {"thresholds", gw_cmd_thresholds, "find the thresholds of queues that drop by worth"},
    {"version", cmd_version, "print the version"},
    {"help", cmd_help, "print this text"},
};

enum {
    KEY_JSON = 256,
    COMMAND_COUNT = sizeof(commands) / sizeof(commands[0]),
};

void gw_assert_failed(const char *condition, const char *file, int line)
{
    fprintf(stderr, "gradwire: internal error: %s:%d: %s\n", file, line, condition);
    abort();
}

static error_t parse_version_option(int key, char *text, struct argp_state *state)
{
    bool *as_json = state->input;
    switch (key) {
    case KEY_JSON:
        *as_json = true;
        return 0;
    case ARGP_KEY_INIT:
        gw_no_hints(state);
        return 0;
    case ARGP_KEY_ARG:
        gw_complain("version: unknown argument '%s'", text);
        return EINVAL;
    default:
        return ARGP_ERR_UNKNOWN;
    }
}

static int cmd_version(int argc, char **argv)
{
    static const struct argp_option options[] = {
        {"json", KEY_JSON, 0, 0, "print one JSON value", 0},
        {0},
    };
    static const struct argp argp = {
        .options = options,
        .parser = parse_version_option,
        .doc = "Prints the version of the program.\vExample:\n  gradwire version --json\n",
    };
    bool as_json = false;
    argp_err_exit_status = GW_EXIT_USAGE;
    if (argp_parse(&argp, argc, argv, 0, NULL, &as_json) != 0)
        return GW_EXIT_USAGE;
    puts(as_json ? "{\"version\": \"" GW_VERSION "\"}" : "gradwire " GW_VERSION);
    return GW_EXIT_OK;
}

static int cmd_help(int argc, char **argv)
{
    (void)argc;
    (void)argv;
    puts("Usage: gradwire COMMAND [ARGUMENTS]\n\n"
         "Moves gradients between workers over shared, lossy Ethernet.\n\nCommands:");
    for (size_t i = 0; i < COMMAND_COUNT; i++)
        printf("  %-10s  %s\n", commands[i].name, commands[i].summary);
    puts("\n'gradwire COMMAND --help' describes a command, with an example.");
    return GW_EXIT_OK;
}

/* At the end of every command, those too that argp ends: what nobody got is a failure. */
static void check_output(void)
{
    errno = 0;
    bool failed = ferror(stdout) != 0;
    if (fflush(stdout) == 0 && !failed)
        return;
    /* An earlier write that failed has left no reason. */
    gw_complain("cannot write standard output%s%s", errno ? ": " : "",
                errno ? strerror(errno) : "");
    _exit(GW_EXIT_FAILURE);
}

/* A descriptor that is closed would become that of the next file or socket, into which output would
 * go. Those opened here in the wrong direction fail every use instead. */
static bool fill_standard_descriptors(void)
{
    for (int fd = STDIN_FILENO; fd <= STDERR_FILENO; fd++)
        if (fcntl(fd, F_GETFD) < 0 &&
            open("/dev/null", fd == STDIN_FILENO ? O_WRONLY : O_RDONLY) != fd)
            return false;
    return true;
}

int main(int argc, char **argv)
{
    if (!fill_standard_descriptors())
        return GW_EXIT_FAILURE;
    const char *name = argc > 1 ? argv[1] : "";
    atexit(check_output);
    if (strcmp(name, "--help") == 0 || strcmp(name, "-h") == 0)
        name = "help";
    if (strcmp(name, "--version") == 0)
        name = "version";
    for (size_t i = 0; i < COMMAND_COUNT; i++) {
        if (strcmp(name, commands[i].name) != 0)
            continue;
        char full_name[64];
        snprintf(full_name, sizeof(full_name), "gradwire %s", name);
        argv[1] = full_name;
        return commands[i].run(argc - 1, argv + 1);
    }
    if (*name)
        gw_complain("unknown command '%s'; try 'gradwire help'", name);
    else
        gw_complain("no command given; try 'gradwire help'");
    return GW_EXIT_USAGE;
}
