/*
 * What the commands share: exit statuses and the one way to complain.
 */
#ifndef GW_CLI_CLI_H
#define GW_CLI_CLI_H

enum {
    GW_EXIT_OK = 0,
    GW_EXIT_FAILURE = 1, /* the work was not done, or not all of it */
    GW_EXIT_USAGE = 2,   /* bad usage or bad input: nothing was changed */
};

/* A command gets its own name as argv[0] ("gradwire sim") and returns an exit status. */
int gw_cmd_allreduce(int argc, char **argv);
int gw_cmd_check(int argc, char **argv);
int gw_cmd_bench(int argc, char **argv);
int gw_cmd_model(int argc, char **argv);
int gw_cmd_sim(int argc, char **argv);
int gw_cmd_server(int argc, char **argv);
int gw_cmd_switch(int argc, char **argv);
int gw_cmd_thresholds(int argc, char **argv);

/* Prints "gradwire: " and the message as one line on standard error. */
void gw_complain(const char *format, ...) __attribute__((format(printf, 1, 2)));

struct argp_state;

/*
 * For ARGP_KEY_INIT of a command: getopt says in one line what is wrong with an option, and argp's
 * second line ("Try ...") goes nowhere.
 */
void gw_no_hints(struct argp_state *state);

#endif
