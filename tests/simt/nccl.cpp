// NCCL between processes of one machine: point-to-point messages in groups. A message is a file in a directory that the
// unique id names: the sender writes it when its stream comes to the operation, the receiver takes it away, and a send
// is done when its file is gone, as strict as NCCL may be. Operations of a communicator run in the order of their calls;
// messages between two ranks match in order and must agree in count and type. The first messages between two ranks connect
// them, while their hosts wait for each other (connect.h). A hang is reported instead: ranks that all wait for each
// other, a host that nobody connects, a rank that has died.
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <set>
#include <string>
#include <vector>

#include <nccl.h>

#include "connect.h"
#include "streams.h"

namespace {

enum { RANKS_MAX = 64, TEXT_MAX = 200, POLLS = 20, WORDS_MAX = 8 };

// The words of one host to another with one tag.
struct words_t {
    std::atomic<int> said, heard; // How many words.
    int channels[WORDS_MAX];
};

// The shared state of a communicator's processes.
struct control_t {
    std::atomic<int> joined, left, progress;
    struct {
        std::atomic<int> process, waits, seen, polls,
            gone;            // seen: the progress when it last looked, for `polls` looks.
        char text[TEXT_MAX]; // The operation that it waits for.
    } rank[RANKS_MAX];
    words_t words[RANKS_MAX][RANKS_MAX][CONNECT_TAGS]; // From, to.
};

struct header_t {
    size_t count;
    int type;
    int unused;
};

struct message_t {
    bool is_send;
    int peer;
    void *data;
    header_t header;
    size_t bytes;
    std::string file;
    bool done;
};

// All calls of one group on one communicator.
struct round_t {
    cudaStream_t stream;
    std::vector<message_t> messages;
    bool started;
};

} // namespace

struct ncclComm {
    std::string folder;
    int rank, size;
    control_t *control;
    std::deque<std::shared_ptr<round_t>> rounds;
    std::shared_ptr<round_t> held; // A planted fault: it changes places with the next one.
    int sent[RANKS_MAX], received[RANKS_MAX];
    bool to[RANKS_MAX], from[RANKS_MAX]; // Ranks to which it is connected.
    ncclResult_t error;
    bool aborted;
};

namespace {

struct call_t {
    ncclComm_t comm;
    cudaStream_t stream;
    message_t message;
};

std::set<ncclComm_t> comms;
std::vector<call_t> calls; // In the open group.
int depth;
long messages, crooked; // The latter do not begin and end at multiples of 16 bytes.

// NCCL's and CUDA's own destructors would wait for ranks, or find their device gone.
struct last_look_t {
    ~last_look_t() {
        if (messages && getenv("SIMT_CALLS"))
            fprintf(stderr, "simt: %ld messages, %ld of them not of whole vectors\n", messages,
                    crooked);
        if (!comms.empty())
            simt::fail("NCCL: the process exits with %zu communicators that are neither destroyed "
                       "nor aborted",
                       comms.size());
    }
} last_look; // Before `comms` goes, which was there before it.

size_t bytes_of(ncclDataType_t type) {
    static const unsigned char bytes[] = {1, 1, 4, 4, 8, 8, 2, 4, 8, 2, 1, 1};
    return (size_t)type < sizeof bytes ? bytes[type] : 0;
}

std::string text_of(const header_t &header) {
    return std::to_string(header.count) + " elements of type " + std::to_string(header.type);
}

// SIMT_NCCL=FAULT:N plants a fault in the N-th call of this process that may have it, counted from 0.
bool is_planted(const char *fault) {
    static const char *planted = getenv("SIMT_NCCL");
    static int calls;
    const size_t length = strlen(fault);
    if (!planted || strncmp(planted, fault, length) != 0 || planted[length] != ':') return false;
    return calls++ == atoi(planted + length + 1);
}

void note_progress(ncclComm_t comm) {
    comm->control->progress++;
    comm->control->rank[comm->rank].waits = 0;
}

std::string file_name(ncclComm_t comm, int from, int to, int number) {
    return comm->folder + "/" + std::to_string(from) + "." + std::to_string(to) + "." +
           std::to_string(number);
}

// A send takes the buffer's content when the stream comes here. A file is there when it is whole.
void publish(ncclComm_t comm, message_t &message) {
    message.file = file_name(comm, comm->rank, message.peer, comm->sent[message.peer]++);
    simt::note_access(message.data, message.bytes, simt::READ);
    const std::string part = message.file + "+";
    FILE *file = fopen(part.c_str(), "wb");
    bool written = file && fwrite(&message.header, sizeof message.header, 1, file) == 1 &&
                   fwrite(message.data, 1, message.bytes, file) == message.bytes;
    if (file && fclose(file) != 0) written = false;
    if (!written || rename(part.c_str(), message.file.c_str()) != 0) {
        simt::fail("NCCL: %s: %s", message.file.c_str(), strerror(errno));
    }
    note_progress(comm);
}

void take(ncclComm_t comm, message_t &message) {
    FILE *file = fopen(message.file.c_str(), "rb");
    if (!file) return;
    header_t sent = {};
    if (fread(&sent, sizeof sent, 1, file) != 1 || sent.count != message.header.count ||
        sent.type != message.header.type) {
        simt::fail("NCCL mismatch: rank %d receives %s, rank %d sends %s", comm->rank,
                   text_of(message.header).c_str(), message.peer, text_of(sent).c_str());
    }
    simt::note_access(message.data, message.bytes, simt::WRITE);
    if (fread(message.data, 1, message.bytes, file) != message.bytes) {
        simt::fail("NCCL: %s is cut off", message.file.c_str());
    }
    fclose(file);
    unlink(message.file.c_str());
    message.done = true;
    note_progress(comm);
}

void start(ncclComm_t comm, round_t &round) {
    round.started = true;
    for (message_t &message : round.messages) {
        messages++;
        crooked += message.bytes && ((uintptr_t)message.data | message.bytes) % 16;
        if (message.is_send) {
            publish(comm, message);
        } else {
            message.file =
                file_name(comm, message.peer, comm->rank, comm->received[message.peer]++);
        }
    }
}

// A step of the stream: true when all messages of the round have arrived, or nobody cares any more.
bool advance(ncclComm_t comm, const std::shared_ptr<round_t> &round) {
    if (!comms.count(comm) || comm->aborted) return true;
    if (comm->rounds.front() != round) return false;
    if (!round->started) start(comm, *round);
    bool all = true;
    const size_t count = round->messages.size(), first = simt::chance((uint32_t)count);
    for (size_t i = 0; i < count; i++) {
        message_t &message = round->messages[(first + i) % count];
        if (message.done) continue;
        if (!message.is_send) {
            take(comm, message);
        } else if (access(message.file.c_str(), F_OK) != 0) {
            message.done = true;
            note_progress(comm);
        }
        all = all && message.done;
    }
    if (all) comm->rounds.pop_front();
    return all;
}

bool is_dead(int process) {
    char path[64], state = 'X';
    snprintf(path, sizeof path, "/proc/%d/stat", process);
    FILE *file = fopen(path, "r");
    if (!file) return true;
    if (fscanf(file, "%*d (%*[^)]) %c", &state) != 1) state = 'X';
    fclose(file);
    return state == 'Z' || state == 'X';
}

std::string text_of(const round_t &round) {
    std::string text;
    for (const message_t &message : round.messages) {
        if (message.done) continue;
        text += text.empty() ? "" : ", ";
        text += message.is_send ? "sends rank " : "receives from rank ";
        text += std::to_string(message.peer) + " " + text_of(message.header);
    }
    return text;
}

// Says for the others what this rank waits for, and counts how long nothing has moved.
void tell(ncclComm_t comm, const std::string &text) {
    auto &own = comm->control->rank[comm->rank];
    const int progress = comm->control->progress;
    own.polls = own.waits && own.seen == progress ? own.polls + 1 : 1;
    own.seen = progress;
    if (own.polls == 1) snprintf(own.text, sizeof own.text, "%s", text.c_str());
    own.waits = 1;
}

int dead_rank(ncclComm_t comm) {
    for (int k = 0; k < comm->control->joined; k++) {
        const auto &other = comm->control->rank[k];
        const bool ended = other.process && is_dead(other.process); // Looked at before `gone`: who
        if (ended && !other.gone) return k;                         // leaves does so first.
    }
    return -1;
}

void report_deadlock(ncclComm_t comm) {
    control_t *control = comm->control;
    for (int k = 0; k < comm->size; k++) {
        const auto &other = control->rank[k];
        const bool waits = other.waits && other.seen == control->progress && other.polls > POLLS;
        if (!other.gone && !waits) return;
    }
    for (int k = 0; k < comm->size; k++) {
        const auto &other = control->rank[k];
        fprintf(stderr, "simt: rank %d of %d %s\n", k, comm->size,
                other.gone ? "has left the communicator" : other.text);
    }
    usleep(100000); // The others want to say so, too.
    simt::fail("NCCL deadlock, seen by rank %d", comm->rank);
}

// Called when no stream can go on. Whether a process lives takes longer to find out than all the rest: not every time.
void look_around() {
    static double looked;
    const double now = simt::now();
    const bool due = now - looked > 0.02;
    if (due) looked = now;
    for (const ncclComm_t comm : comms) {
        if (comm->rounds.empty() || !comm->rounds.front()->started || comm->aborted) continue;
        tell(comm, text_of(*comm->rounds.front()));
        const int dead = due ? dead_rank(comm) : -1;
        if (dead >= 0) {
            simt::fail("the host waits for ever: rank %d has died (cudaStreamQuery and "
                       "ncclCommGetAsyncError would tell)",
                       dead);
        }
        report_deadlock(comm);
    }
}

control_t *open_control(const std::string &folder, bool create) {
    const int file = open((folder + "/control").c_str(), O_RDWR | (create ? O_CREAT : 0), 0600);
    if (file < 0 || (create && ftruncate(file, sizeof(control_t)) != 0)) return NULL;
    void *memory = mmap(NULL, sizeof(control_t), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    close(file);
    return memory == MAP_FAILED ? NULL : (control_t *)memory;
}

// ---- connecting

void say(ncclComm_t comm, const connect_event &event) {
    words_t &words = comm->control->words[comm->rank][event.peer][event.tag];
    if (words.said - words.heard == WORDS_MAX) simt::fail("NCCL: too many words of one host");
    words.channels[words.said % WORDS_MAX] = event.channels;
    words.said++;
    note_progress(comm);
}

// The host is inside of NCCL, where nothing of the program runs; streams go on.
void hear(ncclComm_t comm, const connect_event &event) {
    words_t &words = comm->control->words[event.peer][comm->rank][event.tag];
    const char *deadline = getenv("SIMT_DEADLINE");
    const std::string text =
        "waits in ncclGroupEnd for rank " + std::to_string(event.peer) + " to connect";
    const double limit = 0.8 * (deadline ? atof(deadline) : 20);
    double since = simt::now();
    int seen = comm->control->progress;
    simt::drain([&] {
        if (words.said > words.heard) return true;
        const int progress = comm->control->progress;
        if (progress != seen) since = simt::now();
        seen = progress;
        tell(comm, text);
        report_deadlock(comm);
        if (simt::now() - since > limit)
            simt::fail("NCCL: the host of rank %d of %d %s", comm->rank, comm->size, text.c_str());
        return false;
    });
    const int channels = words.channels[words.heard % WORDS_MAX];
    words.heard++;
    note_progress(comm);
    if (channels != event.channels)
        simt::fail("NCCL: ranks %d and %d connect in other groups of messages (message truncated)",
                   comm->rank, event.peer);
}

// Ranks that have had no message for each other yet.
void connect(ncclComm_t comm, const round_t &round) {
    bool sends[RANKS_MAX] = {}, receives[RANKS_MAX] = {};
    connect_event event[CONNECT_EVENTS * RANKS_MAX];
    for (const message_t &message : round.messages) {
        const bool known = (message.is_send ? comm->to : comm->from)[message.peer];
        if (!known) (message.is_send ? sends : receives)[message.peer] = true;
    }
    sends[comm->rank] = receives[comm->rank] = false;
    const int count = connect_events(comm->rank, comm->size, sends, receives, event);
    for (int i = 0; i < count; i++) {
        if (event[i].waits)
            hear(comm, event[i]);
        else
            say(comm, event[i]);
    }
    for (int r = 0; r < comm->size; r++) {
        comm->to[r] = comm->to[r] || sends[r];
        comm->from[r] = comm->from[r] || receives[r];
    }
}

void start_later(ncclComm_t comm, const std::shared_ptr<round_t> round) {
    comm->rounds.push_back(round);
    simt::enqueue(round->stream, "messages of NCCL", [=] { return advance(comm, round); });
}

// Rounds of the calls of a group, one for each communicator, in the order of their first calls.
ncclResult_t launch_group() {
    const std::vector<call_t> group = std::move(calls);
    calls.clear();
    std::set<ncclComm_t> seen;
    for (const call_t &first : group) {
        const ncclComm_t comm = first.comm;
        if (!seen.insert(comm).second) continue;
        const auto round = std::make_shared<round_t>();
        round->stream = first.stream;
        for (const call_t &call : group) {
            if (call.comm != comm) continue;
            if (call.stream != first.stream)
                simt::fail("NCCL: a group on two streams, which this double does not know");
            round->messages.push_back(call.message);
        }
        if (is_planted("silent")) sleep(1000);
        connect(comm, *round);
        if (is_planted("swap")) {
            comm->held = round;
            continue;
        }
        start_later(comm, round);
        if (comm->held) start_later(comm, std::move(comm->held));
    }
    return ncclSuccess;
}

ncclResult_t add(bool is_send, void *data, size_t count, ncclDataType_t type, int peer,
                 ncclComm_t comm, cudaStream_t stream) {
    if (!comm || comm->aborted || peer < 0 || peer >= comm->size || !bytes_of(type)) {
        return ncclInvalidArgument;
    }
    if (comm->control->joined < comm->size) simt::fail("NCCL: a communicator that is not ready");
    const size_t bytes = count * bytes_of(type);
    if (bytes && !simt::device_reaches(data, bytes)) {
        simt::fail("NCCL: %zu bytes at %p are not in one allocation of the device", bytes, data);
    }
    if (is_planted("refuse")) return ncclInternalError;
    if (is_planted("later")) comm->error = ncclInternalError;
    if (is_planted("die")) _Exit(9);
    if (is_planted("less")) count--;
    const header_t header = {count, (int)type, 0};
    calls.push_back({comm, stream, {is_send, peer, data, header, bytes, "", false}});
    return depth > 0 ? ncclSuccess : launch_group();
}

void leave(ncclComm_t comm) {
    comm->control->rank[comm->rank].gone = 1;
    if (++comm->control->left == comm->size) {
        const std::string command = "rm -rf " + comm->folder; // Named by mkdtemp.
        if (system(command.c_str()) != 0) fprintf(stderr, "simt: %s stays\n", comm->folder.c_str());
    }
    munmap(comm->control, sizeof *comm->control);
    comms.erase(comm);
}

} // namespace

extern "C" {

ncclResult_t ncclGetVersion(int *version) {
    *version = NCCL_VERSION_CODE;
    return ncclSuccess;
}

const char *ncclGetErrorString(ncclResult_t result) {
    return result == ncclSuccess       ? "no error"
           : result == ncclInProgress  ? "in progress"
           : result == ncclRemoteError ? "a rank has died"
                                       : "an error of the emulated NCCL";
}

ncclResult_t ncclGetUniqueId(ncclUniqueId *id) {
    char name[] = "/dev/shm/simt-XXXXXX";
    memset(id, 0, sizeof *id);
    if (!mkdtemp(name) || !open_control(name, true)) return ncclSystemError;
    memcpy(id->internal, name, sizeof name);
    return ncclSuccess;
}

// In progress until all ranks have come.
ncclResult_t ncclCommInitRankConfig(ncclComm_t *to, int size, ncclUniqueId id, int rank,
                                    ncclConfig_t *config) {
    if (size > RANKS_MAX || rank < 0 || rank >= size) return ncclInvalidArgument;
    if (is_planted("join")) return ncclSystemError;
    if (is_planted("absent")) sleep(1000);
    ncclComm_t comm =
        new ncclComm{id.internal, rank, size, NULL, {}, {}, {}, {}, {}, {}, ncclSuccess, false};
    comm->control = open_control(comm->folder, false);
    if (!comm->control) return ncclSystemError;
    comm->control->rank[rank].process = getpid();
    comm->control->joined++;
    comms.insert(comm);
    simt::on_idle(look_around);
    *to = comm;
    if (config && config->blocking == 0) return ncclInProgress;
    const double end = simt::now() + 20;
    while (comm->control->joined < size) {
        if (simt::now() > end) simt::fail("NCCL: not all of %d ranks have come", size);
        usleep(100);
    }
    return ncclSuccess;
}

ncclResult_t ncclCommInitRank(ncclComm_t *to, int size, ncclUniqueId id, int rank) {
    return ncclCommInitRankConfig(to, size, id, rank, NULL);
}

ncclResult_t ncclCommCount(const ncclComm_t comm, int *size) {
    *size = comm->size;
    return ncclSuccess;
}

ncclResult_t ncclCommUserRank(const ncclComm_t comm, int *rank) {
    *rank = comm->rank;
    return ncclSuccess;
}

ncclResult_t ncclCommGetAsyncError(ncclComm_t comm, ncclResult_t *result) {
    if (comm->error == ncclSuccess && dead_rank(comm) >= 0) comm->error = ncclRemoteError;
    *result = comm->error != ncclSuccess           ? comm->error
              : comm->control->joined < comm->size ? ncclInProgress
                                                   : ncclSuccess;
    return ncclSuccess;
}

ncclResult_t ncclCommDestroy(ncclComm_t comm) {
    simt::drain([=] { return comm->rounds.empty(); });
    leave(comm);
    delete comm;
    return ncclSuccess;
}

// Its operations end without having happened. The communicator stays for them, and is not used any more.
ncclResult_t ncclCommAbort(ncclComm_t comm) {
    comm->aborted = true;
    leave(comm);
    return ncclSuccess;
}

ncclResult_t ncclGroupStart(void) {
    depth++;
    return ncclSuccess;
}

ncclResult_t ncclGroupEnd(void) {
    if (depth == 0) return ncclInvalidUsage;
    depth--;
    return depth > 0 ? ncclSuccess : launch_group();
}

ncclResult_t ncclSend(const void *data, size_t count, ncclDataType_t type, int peer,
                      ncclComm_t comm, cudaStream_t stream) {
    return add(true, const_cast<void *>(data), count, type, peer, comm, stream);
}

ncclResult_t ncclRecv(void *data, size_t count, ncclDataType_t type, int peer, ncclComm_t comm,
                      cudaStream_t stream) {
    return add(false, data, count, type, peer, comm, stream);
}
}
