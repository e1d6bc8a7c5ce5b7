/*
 * Where the ranks of a communicator meet; see meeting.h. Rank 0 takes the address from which it
 * reaches what the environment names, or else a rank on another host, and a port that is free.
 */
#include "meeting.h"

#include <netdb.h>
#include <netinet/in.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sys/socket.h>
#include <unistd.h>

/* Copies the host of HOST:PORT, the first if there are several. */
static void host_of(const char *text, char *host, size_t room)
{
    bool has_brackets = text[0] == '[';
    text += has_brackets;
    snprintf(host, room, "%.*s", (int)strcspn(text, has_brackets ? "]" : ":,"), text);
}

static in_port_t *port_of(struct sockaddr_storage *addr)
{
    return addr->ss_family == AF_INET6 ? &((struct sockaddr_in6 *)addr)->sin6_port
                                       : &((struct sockaddr_in *)addr)->sin_port;
}

/* Our address on the way to another. A UDP socket that is connected has it, and nothing is sent. */
static bool find_own(const struct addrinfo *to, struct sockaddr_storage *own)
{
    socklen_t length = sizeof(*own);
    int fd = socket(to->ai_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool is_known = fd >= 0 && connect(fd, to->ai_addr, to->ai_addrlen) == 0 &&
                    getsockname(fd, (struct sockaddr *)own, &length) == 0;
    if (fd >= 0)
        close(fd);
    return is_known;
}

/* Gives our address a free port, and holds that where the job will take it: at all addresses, or at
 * this one alone. */
static bool hold_port(struct sockaddr_storage *own, bool is_alone, struct gw_meeting *meeting)
{
    struct sockaddr_storage at = {.ss_family = own->ss_family}; /* zeros are all addresses */
    socklen_t length = sizeof(at);
    if (is_alone)
        at = *own;
    *port_of(&at) = 0;
    meeting->held = socket(at.ss_family, SOCK_DGRAM | SOCK_CLOEXEC, 0);
    bool is_held = meeting->held >= 0 && bind(meeting->held, (struct sockaddr *)&at, length) == 0 &&
                   getsockname(meeting->held, (struct sockaddr *)&at, &length) == 0;
    if (is_held)
        *port_of(own) = *port_of(&at);
    else
        gw_meeting_let_go(meeting);
    return is_held;
}

void gw_meeting_let_go(struct gw_meeting *meeting)
{
    if (meeting->held >= 0)
        close(meeting->held);
    meeting->held = -1;
}

/* Names our address on the way to another, and a port that is held, as HOST:PORT. */
static bool name_own(const struct addrinfo *to, bool is_alone, struct gw_meeting *meeting)
{
    struct sockaddr_storage own;
    char host[NI_MAXHOST], port[NI_MAXSERV];
    bool is_known = find_own(to, &own) && hold_port(&own, is_alone, meeting) &&
                    getnameinfo((struct sockaddr *)&own, sizeof(own), host, sizeof(host), port,
                                sizeof(port), NI_NUMERICHOST | NI_NUMERICSERV) == 0;
    const char *format = to->ai_family == AF_INET6 ? "[%s]:%s" : "%s:%s";
    return is_known && snprintf(meeting->join, sizeof(meeting->join), format, host, port) <
                           (int)sizeof(meeting->join);
}

/* What tells by which network the ranks reach each other. */
static void find_target(const struct gradwire_options *options, const char *other, char *host,
                        size_t room)
{
    if (options->bind)
        snprintf(host, room, "%s", options->bind);
    else if (options->switch_ || options->join)
        host_of(options->switch_ ? options->switch_ : options->join, host, room);
    else
        snprintf(host, room, "%s", other ? other : "127.0.0.1");
}

static void find_join(const struct gradwire_options *options, const char *other,
                      struct gw_meeting *meeting)
{
    const struct addrinfo hints = {.ai_socktype = SOCK_DGRAM};
    struct addrinfo *found = NULL;
    char host[NI_MAXHOST];
    bool is_known = false;
    find_target(options, other, host, sizeof(host));
    /* Any port will do: nothing is sent there. */
    int code = getaddrinfo(host, "9", &hints, &found);
    for (const struct addrinfo *to = code ? NULL : found; to && !is_known; to = to->ai_next)
        is_known = name_own(to, options->bind != NULL, meeting);
    if (!code)
        freeaddrinfo(found);
    if (!is_known)
        snprintf(meeting->error, sizeof(meeting->error),
                 "no way to %.64s (%s): GRADWIRE_JOIN=HOST:PORT names one that all ranks reach",
                 host, code ? gai_strerror(code) : "no address of ours reaches it");
}

/* Different names in a table; *other is one that is not the first. */
static int count_hosts(const char (*names)[MPI_MAX_PROCESSOR_NAME], int world, const char **other)
{
    int hosts = 0;
    for (int i = 0; i < world; i++) {
        int same = 0;
        while (strcmp(names[same], names[i]) != 0)
            same++;
        hosts += same == i;
        if (same > 0)
            *other = names[same];
    }
    return hosts;
}

/* What rank 0 decides. */
static void decide(const struct gradwire_options *options,
                   const char (*names)[MPI_MAX_PROCESSOR_NAME], int world,
                   struct gw_meeting *meeting)
{
    const char *other = NULL;
    uint64_t number;
    meeting->hosts = count_hosts(names, world, &other);
    if (getrandom(&number, sizeof(number), 0) != (ssize_t)sizeof(number))
        snprintf(meeting->error, sizeof(meeting->error), "the system gives no random numbers");
    else
        snprintf(meeting->job, sizeof(meeting->job), "%.200s-%016llx",
                 options->job ? options->job : "mpi", (unsigned long long)number);
    if (!options->server)
        find_join(options, other, meeting);
}

int gw_meeting_agree(MPI_Comm comm, const struct gradwire_options *options,
                     struct gw_meeting *meeting)
{
    char own[MPI_MAX_PROCESSOR_NAME] = "";
    char(*names)[MPI_MAX_PROCESSOR_NAME] = NULL;
    int length;
    memset(meeting, 0, sizeof(*meeting));
    meeting->held = -1;
    PMPI_Get_processor_name(own, &length);
    if (options->rank == 0)
        names = calloc((size_t)options->world, sizeof(*names));
    if (options->rank == 0 && !names)
        return MPI_ERR_NO_MEM;
    int code = PMPI_Gather(own, sizeof(own), MPI_BYTE, names, sizeof(own), MPI_BYTE, 0, comm);
    if (!code && options->rank == 0)
        decide(options, (const char(*)[MPI_MAX_PROCESSOR_NAME])names, options->world, meeting);
    free(names);
    if (!code)
        code = PMPI_Bcast(meeting, offsetof(struct gw_meeting, held), MPI_BYTE, 0, comm);
    if (code)
        gw_meeting_let_go(meeting);
    return code;
}
