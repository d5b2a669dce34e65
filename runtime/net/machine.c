// Which machine a rank is on, and in which numbering of processes: containers give ranks of one machine
// names and PID namespaces of their own.
#include "runtime/net/net.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

static const char *const numbering = "/proc/self/ns/pid";

// One start of one kernel; 0: unknown.
static uint64_t find_boot(void) {
    char text[64] = "";
    FILE *file = fopen("/proc/sys/kernel/random/boot_id", "re");
    uint64_t hash = 0xcbf29ce484222325u; // FNV-1a
    if (!file) return 0;
    const bool read = fgets(text, sizeof text, file) != NULL;
    fclose(file);
    for (const char *at = text; *at; at++) hash = (hash ^ (unsigned char)*at) * 0x100000001b3u;
    return read ? hash : 0;
}

void hrt_net_peer_self(struct hrt_net_peer *peer, int launched) {
    struct stat status;
    *peer = (struct hrt_net_peer){.process = getpid(), .launched = launched, .boot = find_boot()};
    gethostname(peer->host, sizeof peer->host - 1);
    if (stat(numbering, &status) == 0) peer->processes = status.st_ino;
}

bool hrt_net_same_machine(const struct hrt_net_peer *a, const struct hrt_net_peer *b) {
    return a->boot && b->boot ? a->boot == b->boot : strcmp(a->host, b->host) == 0;
}

bool hrt_net_same_processes(const struct hrt_net_peer *a, const struct hrt_net_peer *b) {
    return hrt_net_same_machine(a, b) && a->processes && a->processes == b->processes;
}

// Reads the parent and the name of a process. False: it cannot be seen.
static bool look_up(long process, long *number, long *parent, char name[17]) {
    char path[64];
    snprintf(path, sizeof path, process ? "/proc/%ld/stat" : "/proc/self/stat", process);
    FILE *file = fopen(path, "re");
    if (!file) return false;
    const bool read = fscanf(file, "%ld (%16[^)]) %*c %ld", number, name, parent) == 3;
    fclose(file);
    return read;
}

bool hrt_net_is_apart(void) {
    enum {
        INITIAL = 0xEFFFFFFC,
        GENERATIONS = 64
    }; // The kernel's own number of the first namespace.
    static const char *const launcher[] = {"mpi", "orte", "prte", "slurm", "srun"};
    struct stat status;
    long number, process = 0;
    char name[17];
    if (stat(numbering, &status) != 0 || status.st_ino == (ino_t)INITIAL) return false;
    for (int i = 0; i < GENERATIONS && look_up(process, &number, &process, name); i++) {
        if (i == 0 && number != getpid()) return true; // The numbers in /proc are the launcher's.
        for (size_t k = 0; i > 0 && k < sizeof launcher / sizeof *launcher; k++) {
            if (strncmp(name, launcher[k], strlen(launcher[k])) == 0) return false;
        }
        if (process == 0) return true; // The first process here has no parent that could be seen.
    }
    return false;
}

// Ranks of one machine whose /dev/shm differs have a flag each: then more than one may print.
struct flag_name {
    int first; // The first rank of this machine.
    char text[64];
};

static struct flag_name flag_name(const struct hrt_net *own, uint64_t key) {
    struct flag_name name = {.first = own->machine_of[own->rank]};
    snprintf(name.text, sizeof name.text, "/hecate-%016llx-%d", (unsigned long long)key,
             name.first);
    return name;
}

int hrt_net_flag_open(const struct hrt_net *own, uint64_t key, bool make) {
    const struct flag_name name = flag_name(own, key);
    if (make != (own->rank == name.first)) return -1;
    if (!make) return shm_open(name.text, O_RDWR | O_CLOEXEC, 0600);
    const int fd = shm_open(name.text, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    if (fd < 0 || ftruncate(fd, sizeof(atomic_int)) == 0) return fd;
    close(fd);
    shm_unlink(name.text);
    return -1;
}

void hrt_net_flag_forget(const struct hrt_net *own, uint64_t key) {
    const struct flag_name name = flag_name(own, key);
    if (own->rank == name.first) shm_unlink(name.text);
}

atomic_int *hrt_net_flag_map(int fd) {
    void *flag = mmap(NULL, sizeof(atomic_int), PROT_READ | PROT_WRITE,
                      fd >= 0 ? MAP_SHARED : MAP_SHARED | MAP_ANONYMOUS, fd, 0);
    if (fd >= 0) close(fd);
    return flag == MAP_FAILED ? NULL : flag;
}

void hrt_net_flag_close(atomic_int *flag) {
    munmap(flag, sizeof *flag);
}
