/*
 * The socket at which a daemon answers `--status`: a path that nobody else may use.
 *
 * Its mode is 0600. Where the config names no path it lies in a folder that belongs to the daemon's
 * user alone: the one that systemd has made for the service, /run/gradwire-KIND of root,
 * $XDG_RUNTIME_DIR/gradwire of others, else /tmp/gradwire-UID. What another has put in its place is
 * refused, and never followed; what an earlier life has left is replaced.
 */
#ifndef GW_CLI_STATUS_SOCKET_H
#define GW_CLI_STATUS_SOCKET_H

#include <sys/un.h>

enum {
    GW_STATUS_PATH_MAX = sizeof(((struct sockaddr_un *)0)->sun_path),
};

/* Whose socket it is. */
struct gw_status_socket {
    const char *path;   /* as the config has it; empty: where it lies by default */
    const char *kind;   /* of daemon */
    const char *listen; /* tells those of a kind apart */
};

/* Opens it, for not more than a handful of askers at a time, and writes its path. Returns a socket
 * that does not block, or a negative GW_ERR_* with `error` filled. */
int gw_status_socket_open(const struct gw_status_socket *cfg, char path[GW_STATUS_PATH_MAX],
                          char *error);

/* Connects to the daemon that has opened it; -1: nobody answers. */
int gw_status_socket_connect(const struct gw_status_socket *cfg);

#endif
