// Three ranks over TCP's transport whose connections go through this process, as if each had a machine of its own: it cuts
// connections, both ways or one, and damages frames. However the job ends, it says so once and names the right rank.
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "runtime/net/tcp_meet.h"
#include "runtime/net/tcp_wire.h"
#include "runtime/net/transport.h"
#include "tests/runtime/support/case.h"

enum { RANKS = 3, COUNT = 100000, HEAD = 16, LARGE = 50000, BEFORE = 4 << 20, TEXT = 4096 };

enum damage { NONE, IN_BODY, IN_HEAD };

// From one rank to another.
struct way {
    int in, out; // Connections to the two; -1: closed.
    bool cut;
    enum damage damage;
    unsigned char head[HEAD]; // The passing frame's.
    size_t at, body;          // Bytes of it that have passed, and those behind its head.
};

struct job {
    struct way way[RANKS][RANKS];
    pid_t rank[RANKS];
    int64_t passed; // Bytes of all ways.
    char said[TEXT];
    size_t length;
    int code[RANKS];
};

// ---- a rank

static void talk(struct hrt_comm *comm, uint32_t *state) {
    static float sums[COUNT];
    static char out[COUNT], in[COUNT];
    struct hrt_step step[2];
    struct hrt_steps steps = {.step = step, .room = 2};
    for (int i = 0; i < COUNT; i++) {
        *state = *state * 1664525 + 1013904223;
        sums[i] = (float)*state;
        out[i] = (char)(*state >> 24);
    }
    hrt_net_steps_receive(&steps, (comm->rank + RANKS - 1) % RANKS, in, COUNT, -1);
    hrt_net_steps_send(&steps, (comm->rank + 1) % RANKS, out, COUNT, -1);
    const struct hrt_mark mark = hrt_net_lane_submit(comm, HRT_LANE_GATHER, &steps);
    hrt_net_comm_all_reduce(comm, sums, COUNT, HRT_FLOAT);
    hrt_net_lane_join(comm, mark, "a transfer");
}

static _Noreturn void be_rank(int rank, int *fd, int rounds) {
    struct hrt_error error = {0};
    struct hrt_comm comm;
    struct hrt_meeting meeting = {.fd = fd, .number_of = calloc(RANKS, sizeof(int32_t))};
    struct hrt_net *own = hrt_net_reserve(&hrt_net_tcp_wire, RANKS);
    if (!own || !meeting.number_of) _exit(9);
    own->many_threads = true;
    own->rank = rank;
    if (!hrt_net_read_settings(own, &error)) _exit(9);
    for (int r = 0; r < RANKS; r++) {
        meeting.number_of[r] = r;
        own->node_of[r] = r;
        own->peer[r] =
            (struct hrt_net_peer){.process = 1000 + r, .boot = (uint64_t)r + 1, .launched = r};
        snprintf(own->peer[r].host, sizeof own->peer[r].host, "n%d", r);
    }
    if (!hrt_net_tcp_wire_open(own, &meeting)) _exit(9);
    hrt_net_begin(own, &comm, RANKS, (uint64_t)getppid() << 8);
    uint32_t state = (uint32_t)rank;
    for (int i = 0; i < rounds; i++) talk(&comm, &state);
    hrt_net_comm_close(&comm);
    _exit(0);
}

// ---- between the ranks

static void start(struct job *job, int rounds, int said) {
    int end[RANKS][RANKS]
           [2]; // The connection from one to the other: the rank's end, and the one here.
    for (int a = 0; a < RANKS; a++) {
        for (int b = 0; b < RANKS; b++) {
            assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, end[a][b]), 0);
            fcntl(end[a][b][0], F_SETFL, O_NONBLOCK);
        }
    }
    for (int r = 0; r < RANKS; r++) {
        int fd[RANKS];
        for (int b = 0; b < RANKS; b++) fd[b] = b == r ? -1 : end[r][b][0];
        job->rank[r] = fork();
        if (job->rank[r] > 0) continue;
        dup2(said, STDERR_FILENO);
        close(said);
        for (int a = 0; a < RANKS; a++) {
            for (int b = 0; b < RANKS; b++) {
                close(end[a][b][1]);
                if (a != r) close(end[a][b][0]);
            }
        }
        alarm(60);
        be_rank(r, fd, rounds);
    }
    for (int a = 0; a < RANKS; a++) {
        for (int b = 0; b < RANKS; b++) {
            close(end[a][b][0]);
            job->way[a][b].in = a == b ? -1 : end[a][b][1];
            job->way[a][b].out = a == b ? -1 : end[b][a][1];
        }
    }
    close(said);
}

// Two words of the bytes that change places leave TCP's checksum as it is.
static bool exchange_words(unsigned char *at) {
    unsigned char word[2];
    if (memcmp(at, at + 2, 2) == 0) return false;
    memcpy(word, at, 2);
    memcpy(at, at + 2, 2);
    memcpy(at + 2, word, 2);
    return true;
}

// Follows the frames of what passes, a byte at a time; the first large one of those that may be is damaged.
static void follow(struct way *way, unsigned char *data, size_t bytes, bool may) {
    const size_t last = way->damage == IN_HEAD ? HEAD : HEAD + 1000; // End of the damaged part.
    const size_t before = way->damage == IN_HEAD ? HEAD - 4 : 4;     // Where that begins.
    for (size_t i = 0; i < bytes; i++) {
        if (way->at < HEAD) way->head[way->at] = data[i];
        way->at++;
        uint32_t length;
        memcpy(&length, way->head + 4, sizeof length);
        if (way->at == HEAD) way->body = length;
        if (may && way->damage != NONE && way->at == last && way->body > LARGE && i + 1 >= before &&
            exchange_words(data + i + 1 - before))
            way->damage = NONE;
        if (way->at >= HEAD && way->at == HEAD + way->body) way->at = 0;
    }
}

static void pass_on(struct job *job, struct way *way) {
    static unsigned char data[1 << 16];
    const ssize_t came = read(way->in, data, sizeof data);
    if (came <= 0) {
        shutdown(way->out, SHUT_WR);
        way->in = -1;
        return;
    }
    job->passed += came;
    follow(way, data, (size_t)came, job->passed > BEFORE);
    for (ssize_t at = 0; at < came;) {
        const ssize_t sent = send(way->out, data + at, (size_t)(came - at), MSG_NOSIGNAL);
        if (sent <= 0) return; // It has ended.
        at += sent;
    }
}

// Until all ranks have ended. From some time on ways that `cut` says are cut.
static void carry(struct job *job, int said, const bool cut[RANKS][RANKS]) {
    for (;;) {
        struct pollfd wait[RANKS * RANKS + 1] = {{.fd = said, .events = POLLIN}};
        struct way *ways = &job->way[0][0];
        for (int i = 0; i < RANKS * RANKS; i++) {
            ways[i].cut = job->passed > BEFORE && (&cut[0][0])[i];
            wait[i + 1] = (struct pollfd){.fd = ways[i].cut ? -1 : ways[i].in, .events = POLLIN};
        }
        if (poll(wait, RANKS * RANKS + 1, 100) <= 0) continue;
        for (int i = 0; i < RANKS * RANKS; i++) {
            if (wait[i + 1].revents) pass_on(job, &ways[i]);
        }
        if (!wait[0].revents) continue;
        const ssize_t came = read(said, job->said + job->length, TEXT - 1 - job->length);
        if (came <= 0) return;
        job->length += (size_t)came;
    }
}

static struct job run(int rounds, const bool cut[RANKS][RANKS], enum damage damage) {
    struct job job = {.way[0][1].damage = damage};
    int said[2];
    assert_int_equal(pipe(said), 0);
    start(&job, rounds, said[1]);
    carry(&job, said[0], cut);
    close(said[0]);
    for (int r = 0; r < RANKS; r++) {
        int status;
        waitpid(job.rank[r], &status, 0);
        job.code[r] = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
        for (int b = 0; b < RANKS; b++) {
            if (b != r) close(job.way[r][b].out);
        }
    }
    return job;
}

// ---- what is said

static int times(const char *text, const char *part) {
    int count = 0;
    for (const char *at = text; (at = strstr(at, part)); at++) count++;
    return count;
}

static void expect(const struct job *job, int messages, const char *part, int code) {
    bool sound = times(job->said, "\n") == messages && times(job->said, part) == messages;
    for (int r = 0; r < RANKS; r++) sound &= job->code[r] == code;
    if (!sound)
        fail_msg("expected %d times '%s' and exit code %d, not %d, %d, %d and:\n%s", messages, part,
                 code, job->code[0], job->code[1], job->code[2], job->said);
}

static const bool whole[RANKS][RANKS];

static void ranks_end_well(void **state) {
    (void)state;
    const struct job job = run(20, whole, NONE);
    expect(&job, 0, "error", 0);
}

static void a_link_that_is_cut_is_told_once(void **state) {
    (void)state;
    const bool first[RANKS][RANKS] = {[0][2] = true, [2][0] = true};
    const struct job one = run(100000, first, NONE);
    expect(&one, 1, "lost rank 2 (process 1002 on n2): no heartbeat for 3 s on rank 0", 1);
    const bool last[RANKS][RANKS] = {[1][2] = true, [2][1] = true};
    const struct job other = run(100000, last, NONE);
    expect(&other, 1, "lost rank 1 (process 1001 on n1): no heartbeat for 3 s on rank 2", 1);
}

static void a_link_that_is_cut_one_way_is_told_once(void **state) {
    (void)state;
    const bool back[RANKS][RANKS] = {[2][0] = true};
    const struct job one = run(100000, back, NONE);
    expect(&one, 1, "lost rank 2 (process 1002 on n2): no heartbeat for 3 s on rank 0", 1);
    const bool forth[RANKS][RANKS] = {[0][2] = true}; // No heartbeat goes there: patience ends.
    const struct job other = run(100000, forth, NONE);
    expect(&other, 1, "lost rank ", 1);
    assert_int_equal(times(other.said, "lost rank 1"), 0);
}

static void a_rank_that_hears_nobody_names_itself(void **state) {
    (void)state;
    const bool alone[RANKS][RANKS] = {[0][1] = true, [1] = {true, false, true}, [2][1] = true};
    const struct job job = run(100000, alone, NONE);
    expect(&job, 2, "lost rank 1 (process 1001 on n1): ", 1);
    assert_int_equal(times(job.said, "it hears no other rank for 3 s"), 1);
}

static void a_damaged_frame_ends_the_job(void **state) {
    (void)state;
    const struct job body = run(60, whole, IN_BODY);
    expect(&body, 1, "rank 1 received a damaged frame from rank 0 (process 1000 on n0): ", 1);
    assert_true(times(body.said, " bytes of a collective, whose checksum is ") +
                    times(body.said, " bytes of experts, whose checksum is ") ==
                1);
    const struct job head = run(60, whole, IN_HEAD);
    expect(&head, 1,
           "rank 1 received a damaged frame from rank 0 (process 1000 on n0): its head: ", 1);
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(ranks_end_well),
        cmocka_unit_test(a_link_that_is_cut_is_told_once),
        cmocka_unit_test(a_link_that_is_cut_one_way_is_told_once),
        cmocka_unit_test(a_rank_that_hears_nobody_names_itself),
        cmocka_unit_test(a_damaged_frame_ends_the_job),
    };
    setenv("HECATE_COMM_TIMEOUT", "3", 1);
    setenv("HECATE_COMM_PATIENCE", "8", 1);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
