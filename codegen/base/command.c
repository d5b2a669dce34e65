// Running another program.
#include "codegen/base/command.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "codegen/base/output.h"

void hec_command_add(struct hec_command *c, const char *text) {
    HEC_PUSH(c->arena, &c->word, hec_arena_copy(c->arena, text, strlen(text)));
}

// --cc='ccache gcc' is two words.
void hec_command_add_words(struct hec_command *c, const char *text) {
    for (;;) {
        text += strspn(text, " ");
        const size_t length = strcspn(text, " ");
        if (!length) return;
        HEC_PUSH(c->arena, &c->word, hec_arena_copy(c->arena, text, length));
        text += length;
    }
}

static void show_word(const char *word) {
    const bool plain = *word && !word[strspn(word, "abcdefghijklmnopqrstuvwxyz"
                                                   "ABCDEFGHIJKLMNOPQRSTUVWXYZ"
                                                   "0123456789-_=+./,:@%")];
    if (plain) {
        fputs(word, stderr);
        return;
    }
    fputc('\'', stderr);
    for (; *word; word++) {
        if (*word == '\'')
            fputs("'\\''", stderr);
        else
            fputc(*word, stderr);
    }
    fputc('\'', stderr);
}

void hec_command_show(const struct hec_command *c) {
    if (c->below_mpicc) {
        fputs("OMPI_CC=", stderr);
        show_word(c->below_mpicc);
        fputc(' ', stderr);
    }
    for (int i = 0; i < c->word.count; i++) {
        if (i) fputc(' ', stderr);
        show_word(c->word.item[i]);
    }
    fputc('\n', stderr);
}

// In the child: becomes the command. Returns when it cannot, with errno.
static void become(const struct hec_command *c, int channel, const char *folder) {
    if (fcntl(channel, F_SETFD, FD_CLOEXEC) != 0) return;
    if (!c->spreads && setenv("TMPDIR", folder, 1) != 0) return;
    if (c->below_mpicc && setenv("OMPI_CC", c->below_mpicc, 1) != 0) return;
    if (c->said) {
        const int nothing = open("/dev/null", O_RDONLY | O_CLOEXEC);
        const int said = open(c->said, O_WRONLY | O_TRUNC | O_CLOEXEC);
        if (nothing < 0 || said < 0) return;
        dup2(nothing, STDIN_FILENO), dup2(said, STDOUT_FILENO), dup2(said, STDERR_FILENO);
    }
    execvp(c->word.item[0], c->word.item);
}

// The child sends back why it could not be started over a pipe that a successful exec closes.
int hec_command_run(struct hec_command *c) {
    int channel[2], reason = 0, status = 0;
    HEC_PUSH(c->arena, &c->word, NULL);
    c->word.count--;
    if (pipe(channel) != 0) return -1;
    fflush(NULL);
    const char *folder = hec_output_child_begin();
    if (!folder) {
        close(channel[0]), close(channel[1]);
        return HEC_COMMAND_NO_FOLDER;
    }
    const pid_t child = fork();
    if (child == 0) {
        setpgid(0, 0); // A group of its own: a signal ends what it starts, too.
        hec_output_child(0, 0);
        close(channel[0]);
        become(c, channel[1], folder);
        reason = errno;
        const ssize_t sent = write(channel[1], &reason, sizeof reason);
        _exit(sent == sizeof reason ? 127 : 126);
    }
    bool failed = child < 0;
    if (failed) reason = errno;
    if (!failed) setpgid(child, child); // The child does, too: either may be first.
    hec_output_child(child, c->seconds);
    close(channel[1]);
    ssize_t got = 0;
    while (!failed && (got = read(channel[0], &reason, sizeof reason)) < 0 && errno == EINTR)
        continue;
    failed |= got == (ssize_t)sizeof reason;
    close(channel[0]);
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) continue;
    const bool in_time = hec_output_child_end();
    errno = reason;
    return failed ? -1 : in_time ? status : HEC_COMMAND_LATE;
}

void hec_command_complain(const struct hec_command *c, const char *what, int status) {
    const int why = errno;
    if (status == HEC_COMMAND_NO_FOLDER) return;
    fprintf(stderr, "hecatec: error: ");
    if (status == -1) {
        fprintf(stderr, "cannot run %s '%s': %s\n", what, c->word.item[0], strerror(why));
    } else if (WIFSIGNALED(status)) {
        fprintf(stderr, "%s '%s' was ended by signal %d (%s)\n", what, c->word.item[0],
                WTERMSIG(status), strsignal(WTERMSIG(status)));
    } else {
        fprintf(stderr,
                "%s '%s' failed with status %d; -v shows how it was called, --save-temps keeps "
                "the C\n",
                what, c->word.item[0], WEXITSTATUS(status));
    }
}
