// train: the loop over steps, with evaluation, logs, signals and what follows the last step.
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "kernels/cpu/isa.h"
#include "kernels/cpu/peak.h"
#include "runtime/base/clock.h"
#include "runtime/cli/command.h"
#include "runtime/cli/facts.h"
#include "runtime/cli/opening.h"
#include "runtime/cli/openmp.h"
#include "runtime/cli/pretend.h"
#include "runtime/cli/saves.h"
#include "runtime/log/jsonl.h"
#include "runtime/log/metrics.h"
#include "runtime/log/progress.h"
#include "runtime/log/run_header.h"
#include "runtime/log/tensorboard.h"
#include "runtime/store/weights.h"
#include "runtime/train/check_grad.h"
#include "runtime/train/create.h"
#include "runtime/train/ranks.h"
#include "runtime/train/trainer.h"

struct job {
    const struct hrt_run *run;
    const struct hrt_config *config;
    struct hrt_data data;
    struct hrt_sampler sampler; // With --sample.
    struct hrt_state state;
    struct hrt_trainer trainer;
    struct hrt_route route;
    struct hrt_progress progress;
    struct hrt_jsonl log;
    struct hrt_tensorboard board;
    struct hrt_metrics metrics;
    struct hk_pretence pretence;
    struct hrt_saves saves;
    bool save_asked;                    // By a signal, or the clock.
    double peak;                        // FLOP/s of this rank, where there is a log; 0: not known.
    struct hrt_step_report first, last; // Steps taken.
    int64_t skipped;                    // Steps.
    double seconds, evaluating;         // Training time without evaluations; their time.
    struct hrt_collapse collapse;
};

// Signals that stop a run after its current step. SIGPIPE means that nobody reads standard output
// any more: the run notices it when it writes a line.
static const struct stop {
    int number;
    const char *name;
} stops[] = {{SIGINT, "SIGINT"}, {SIGTERM, "SIGTERM"}, {SIGHUP, "SIGHUP"}, {SIGPIPE, "SIGPIPE"}};
enum { STOPS = sizeof stops / sizeof *stops };

static volatile sig_atomic_t stop_signal; // The signal that asked to stop, or 0.
static volatile sig_atomic_t save_signal; // SIGUSR1 has asked for a checkpoint.
static bool tells;                        // One rank does, of those that are asked together.

static void on_signal(int number) {
    static const char notice[] = "\nstopping after this step; once more stops at once\n";
    stop_signal = number;
    if (!tells) return;
    if (write(STDERR_FILENO, notice, sizeof notice - 1) < 0) return; // Nothing to be done about it.
}

static void on_save_signal(int number) {
    (void)number;
    save_signal = 1;
}

// The first signal asks to stop after the step; a second one of the same kind ends the process.
static void watch_signals(bool leads) {
    tells = leads;
    struct sigaction action = {.sa_handler = on_signal, .sa_flags = (int)SA_RESETHAND | SA_RESTART};
    struct sigaction hangup;
    sigemptyset(&action.sa_mask);
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGHUP, NULL, &hangup);
    if (hangup.sa_handler != SIG_IGN) sigaction(SIGHUP, &action, NULL); // As nohup wants.
    action.sa_handler = on_save_signal;
    action.sa_flags = SA_RESTART;
    sigaction(SIGUSR1, &action, NULL);
}

// Warns of a run that leaves no file behind.
static void print_what_is_kept(const struct job *job) {
    const struct hrt_arguments *arguments = job->run->arguments;
    if (arguments->save || job->saves.to.dir || arguments->pretend) return;
    printf("keeping: nothing (--save FILE keeps the parameters, --checkpoint DIR the run)\n");
}

// Opens the files of --route and --record; the trainer knows how many sequences a step has.
static bool open_route(struct job *job, struct hrt_error *error) {
    const struct hrt_run *run = job->run;
    const struct json_t *facts = job->saves.from.facts;
    const struct hrt_route_request request = {
        .route = run->arguments->route,
        .record_ids = run->arguments->record_ids,
        .record_loads = run->arguments->record_loads,
        .seed = (uint64_t)job->config->train_seed,
        .from = job->trainer.from,
        .drawn = job->trainer.drawn,
        .ids_begun = hrt_cli_facts_record(facts, run->arguments->record_ids),
        .loads_begun = hrt_cli_facts_record(facts, run->arguments->record_loads),
        .steps = job->config->train_steps,
        .batch = job->trainer.batch,
        .iterations = job->trainer.iterations,
        .device = &job->state.device,
    };
    job->trainer.route = &job->route;
    const struct hpl_movement *movement = run->program->movement;
    return hrt_route_open(&job->route, &request, run->program, run->comm, job->state.model,
                          job->state.arena, error) &&
           (!movement || !movement->known || hrt_route_check_known(&job->route, error));
}

// Opens the files of --profile and --trace.
static bool open_profile(struct job *job, struct hrt_error *error) {
    const struct hrt_run *run = job->run;
    const struct hrt_profile_request request = {
        .table = run->arguments->profile,
        .trace = run->arguments->trace,
        .tokens = job->trainer.tokens,
    };
    return hrt_profile_open(&job->trainer.profile, &request, run->program, run->comm,
                            &job->state.device, error);
}

// Starts --pretend.
static bool start_pretending(struct job *job, struct hrt_error *error) {
    const struct hrt_arguments *arguments = job->run->arguments;
    if (!arguments->pretend) return true;
    if (arguments->save || arguments->sample)
        return hrt_fail_usage(error, "--pretend trains nothing that could be saved or sampled");
    if (!hrt_cli_pretend_read(&job->pretence, arguments->pretend, error)) return false;
    hk_pretend(&job->pretence);
    printf("pretending: kernels wait instead of computing, losses mean nothing\n");
    return true;
}

// Rank 0 writes the files of a run.
static bool leads(const struct hrt_run *run) {
    return run->comm->rank == 0;
}

// Opens the inputs of one rank, before it takes memory and without the others.
static bool open_inputs(struct job *job, struct hrt_error *error) {
    const struct hrt_run *run = job->run;
    const char *save = run->arguments->save;
    if (!start_pretending(job, error)) return false;
    if (run->arguments->sample && !hrt_cli_run_open_sampler(run, &job->sampler, error))
        return false;
    if (save && leads(run) && !hrt_store_check_writable(save, error)) return false;
    if ((run->arguments->save_best || job->config->train_patience) &&
        (!job->config->train_eval_every || !job->config->train_eval_steps))
        return hrt_fail_usage(error, "%s asks for evaluations: set train.eval_every",
                              run->arguments->save_best ? "--save-best" : "train.patience");
    if (run->arguments->save_best && leads(run) &&
        !hrt_store_check_writable(run->arguments->save_best, error))
        return false;
    if (!hrt_cli_run_open_data(run, &job->data, error)) return false;
    if (job->data.train.starts == 0)
        return hrt_fail_usage(error, "no training data: give --data FILE");
    if (job->config->train_eval_every && job->config->train_eval_steps &&
        job->data.validation.windows == 0)
        return hrt_fail(error, "no validation data for train.eval_every: give --val FILE");
    return true;
}

// Opens the files of --tensorboard and --metrics, on the rank that leads.
static bool open_watchers(struct job *job, struct hrt_error *error) {
    const struct hrt_arguments *arguments = job->run->arguments;
    if (!leads(job->run)) return true;
    return hrt_log_tensorboard_open(&job->board, arguments->tensorboard, error) &&
           hrt_log_metrics_open(&job->metrics, (int)arguments->metrics, error);
}

// Plans the run, and compares it with the checkpoint that it resumes.
static bool plan(struct job *job, struct hrt_error *error) {
    const struct hrt_run *run = job->run;
    struct hrt_config *config = &run->arguments->config;
    if (!hrt_train_trainer_plan(&job->trainer, run->program, config, run->comm, &job->data,
                                error) ||
        !hrt_cli_saves_go_on(&job->saves, &job->trainer, error))
        return false;
    if (config->train_epochs > 0)
        config->train_steps = hrt_train_last_step(&job->trainer, config->train_epochs);
    return hrt_train_rates(&job->trainer.rates, config, error) &&
           hrt_cli_saves_check(&job->saves, &job->trainer, error);
}

// And then.
static bool set_up(struct job *job, struct hrt_error *error) {
    const struct hrt_run *run = job->run;
    if (!hrt_cli_saves_recall(&job->saves, &job->state, error)) return false;
    const char *log = leads(run) ? job->config->log_jsonl : NULL;
    const int64_t kept = log ? hrt_cli_facts_log(job->saves.from.facts, log) : 0;
    return hrt_train_trainer_create(&job->trainer, &job->state, error) &&
           hrt_log_jsonl_open(&job->log, log, kept, error) && open_watchers(job, error);
}

static bool prepare(struct job *job, struct hrt_error *error) {
    struct hrt_run run = *job->run;
    if (!hrt_train_ranks_agree(run.comm, open_inputs(job, error), error) ||
        !hrt_cli_saves_open(&job->saves, job->run, error) ||
        !hrt_train_ranks_agree(run.comm, plan(job, error), error))
        return false;
    run.from = job->saves.from.step ? &job->saves.from : NULL;
    job->last.step = job->saves.from.step;
    if (!hrt_cli_run_create_state(&run, &job->state, &job->data, true, error) ||
        !hrt_train_ranks_agree(run.comm, set_up(job, error), error))
        return false;
    hrt_cli_saves_share(&job->saves, &job->state);
    return open_route(job, error);
}

// Whether step `number`, from 1, is followed by an evaluation: the last one is, where anything is held out.
static bool evaluates(const struct job *job, int64_t number) {
    const struct hrt_config *config = job->config;
    if (config->train_eval_steps == 0 || job->data.validation.windows == 0) return false;
    if (job->run->arguments->pretend) return false;
    return number == config->train_steps ||
           (config->train_eval_every > 0 && number % config->train_eval_every == 0);
}

static bool evaluate(struct job *job, struct hrt_step_report *step, struct hrt_error *error) {
    const struct hrt_config *config = job->config;
    if (!evaluates(job, step->step)) return true;
    const double begun = hrt_base_now();
    hrt_net_comm_be_patient(job->run->comm, true);
    step->evaluated = true;
    const int64_t sequences =
        config->train_eval_steps * (job->trainer.tokens / job->run->program->positions);
    if (!hrt_train_evaluate(&job->state, &job->data, sequences, NULL, &step->validation, error))
        return false;
    hrt_net_comm_be_patient(job->run->comm, false);
    job->evaluating += hrt_base_now() - begun;
    return true;
}

// Watching ends no run: a failure is reported once, and the run goes on without it.
static void go_on_without(const struct job *job, const struct hrt_error *lost) {
    hrt_warn(job->run->program->name, "%s; the run goes on without it", lost->text);
}

// Routes that are forced are no router's.
static void look_at_routers(struct job *job, const struct hrt_routers *routers) {
    if (!hrt_train_collapse_step(&job->collapse, routers) || job->run->arguments->route) return;
    if (!leads(job->run)) return;
    hrt_log_progress_end_line(&job->progress);
    hrt_train_collapse_warn(&job->trainer.loads, routers);
}

// Shows a step. From here on output goes nowhere when nobody takes it; a reader that has gone away has also
// asked to stop.
static void show(struct job *job, const struct hrt_step_report *step) {
    if (hrt_log_progress_step(&job->progress, step)) return;
    const int reason = errno;
    if (reason == EPIPE) {
        if (!stop_signal) stop_signal = SIGPIPE;
    } else {
        hrt_warn(job->run->program->name,
                 "cannot write to standard output: %s; the run goes on without it",
                 strerror(reason));
    }
    if (!freopen("/dev/null", "w", stdout)) return; // It stays as it is.
}

// For machines.
static void log_step(struct job *job, const struct hrt_step_report *step) {
    const struct hrt_config *config = job->config;
    const struct hrt_load_counts *loads = job->run->program->loads ? &job->trainer.loads : NULL;
    const bool in_full = config->log_loads > 0 && step->step % config->log_loads == 0;
    const bool by_layer = step->step % config->log_every == 0 || step->step == config->train_steps;
    const struct hrt_log_layers layers = {.routers = by_layer ? loads : NULL,
                                          .loads = in_full ? loads : NULL,
                                          .watch = in_full ? &job->trainer.watch : NULL,
                                          .trainer = &job->trainer};
    const double peak = job->progress.peak;
    struct hrt_error lost;
    if (!hrt_log_jsonl_step(&job->log, step, &layers, &lost)) go_on_without(job, &lost);
    if (!hrt_log_tensorboard_step(&job->board, step, layers.routers, peak, &lost))
        go_on_without(job, &lost);
    hrt_log_metrics_step(&job->metrics, step, peak, job->run->program->name);
}

// Writes parameters. All ranks.
static bool write_params(struct job *job, const char *path, struct hrt_error *error) {
    struct hrt_comm *comm = job->run->comm;
    const struct hrt_buffer params = hrt_params_state_buffer(&job->state, HRT_PARAMETERS);
    return hrt_train_ranks_agree(comm, hrt_store_gather(&params, comm, path, error), error);
}

// All ranks know the loss, so they agree on which evaluation is the best.
static bool note_evaluation(struct job *job, const struct hrt_step_report *step,
                            struct hrt_error *error) {
    const char *path = job->run->arguments->save_best;
    const bool better = hrt_train_note_evaluation(&job->trainer, step->step, step->validation.loss);
    if (!better || !path) return true;
    hrt_net_comm_be_patient(job->run->comm, true);
    const bool saved = write_params(job, path, error);
    hrt_net_comm_be_patient(job->run->comm, false);
    return saved;
}

// Whether train.patience is at its end.
static bool is_exhausted(const struct job *job) {
    const int64_t patience = job->config->train_patience;
    return patience > 0 && job->trainer.best.worse >= patience;
}

// Takes the report of a step and tells it.
static bool tell(struct job *job, struct hrt_error *error) {
    struct hrt_step_report step;
    if (!hrt_train_trainer_report(&job->trainer, &step, error)) return false;
    if (job->first.step == 0) job->first = step;
    job->last = step;
    if (step.skipped && leads(job->run)) {
        hrt_log_progress_end_line(&job->progress);
        hrt_warn(job->run->program->name, "step %" PRId64 " is skipped: its %s is not finite (%g)",
                 step.step, isfinite(step.loss) ? "gradient" : "loss",
                 isfinite(step.loss) ? step.grad_norm : step.loss);
    }
    job->skipped += step.skipped;
    if (!evaluate(job, &step, error)) return false;
    show(job, &step);
    look_at_routers(job, &step.routers);
    log_step(job, &step);
    return !step.evaluated || note_evaluation(job, &step, error);
}

// The reports of all steps but the last `left`.
static bool tell_all_but(struct job *job, int64_t left, struct hrt_error *error) {
    const struct hrt_trainer *trainer = &job->trainer;
    bool told = true;
    while (told && trainer->asked - trainer->reported > left) told = tell(job, error);
    return told;
}

// The report of a step that something else waits for anyway comes at once; another one, where the host is ahead of the
// device, with the next step.
static bool take_step(struct job *job, int64_t number, struct hrt_error *error) {
    const bool waits = !job->trainer.ahead || evaluates(job, number + 1);
    return hrt_train_trainer_ask(&job->trainer, number, error) &&
           tell_all_but(job, waits ? 0 : 1, error);
}

static void warn_of_save(const struct job *job, int64_t step, const struct hrt_error *failed) {
    if (*failed->text)
        hrt_warn(job->run->program->name, "no checkpoint of step %" PRId64 ": %s", step,
                 failed->text);
}

// Waits for the save that is being written. One that fails keeps the one before, and the run goes on.
static void finish_save(struct job *job) {
    struct hrt_error failed = {0};
    if (!job->saves.saving) return;
    hrt_net_comm_be_patient(job->run->comm, true);
    if (!hrt_cli_saves_finish(&job->saves, &failed)) warn_of_save(job, job->saves.begun, &failed);
    hrt_net_comm_be_patient(job->run->comm, false);
}

// Begins to write a checkpoint of the last step that was taken, once the one before has ended.
static bool checkpoint(struct job *job, struct hrt_error *error) {
    struct hrt_error failed = {0};
    if (!tell_all_but(job, 0, error)) return false;
    finish_save(job);
    hrt_net_comm_be_patient(job->run->comm, true);
    if (!hrt_cli_saves_begin(&job->saves, &job->trainer, &job->log, job->last.step, &failed))
        warn_of_save(job, job->last.step, &failed);
    hrt_net_comm_be_patient(job->run->comm, false);
    return true;
}

// The last one, when there is anything new.
static bool checkpoint_end(struct job *job, struct hrt_error *error) {
    struct hrt_saves *saves = &job->saves;
    if (!saves->to.dir) return true;
    struct hrt_error failed = {0};
    if (!hrt_cli_saves_finish(saves, &failed)) warn_of_save(job, saves->begun, &failed);
    if (job->last.step <= saves->saved) return true;
    if (!hrt_cli_saves_begin(saves, &job->trainer, &job->log, job->last.step, error) ||
        !hrt_cli_saves_finish(saves, error))
        return false;
    printf("checkpoint: %s/step-%" PRId64 "\n", saves->to.dir, job->last.step);
    return true;
}

// The best evaluation, where the run asks for it.
static void print_best(const struct job *job) {
    const struct hrt_best *best = &job->trainer.best;
    const char *path = job->run->arguments->save_best;
    if (is_exhausted(job))
        printf("ended early: %" PRId64 " evaluations without a lower loss (train.patience)\n",
               best->worse);
    if (best->step && (path || job->config->train_patience))
        printf("best: step %" PRId64 ", validation loss %.4f%s%s\n", best->step, best->loss,
               path ? ", in " : "", path ? path : "");
}

static void print_summary(const struct job *job) {
    char tokens[32], rate[32];
    const int64_t steps = job->last.step - job->saves.from.step;
    const double trained = (double)(steps * job->trainer.tokens);
    if (steps == 0) {
        printf("no step was taken: %" PRId64 " of %" PRId64 " are done\n", job->last.step,
               job->config->train_steps);
        return;
    }
    hrt_log_format_count(tokens, sizeof tokens, trained);
    hrt_log_format_count(rate, sizeof rate, job->seconds > 0 ? trained / job->seconds : 0);
    printf("%s: %" PRId64 " steps, %s tokens in %.1f s (%s tok/s), loss %.4f -> %.4f\n",
           stop_signal ? "stopped" : "done", steps, tokens, job->seconds, rate, job->first.loss,
           job->last.loss);
    if (job->skipped) printf("%" PRId64 " steps were skipped\n", job->skipped);
    print_best(job);
}

// Whether the run was asked to stop, and whether to save. Ranks do so together, whichever of them was signalled, and
// whenever: so all of them ask at the same places, and nothing that they do together depends on the signals themselves.
// The same with a save that all of them have written.
static bool is_stopped(struct job *job) {
    const bool saves = job->saves.to.dir && (save_signal || hrt_cli_saves_late(&job->saves));
    enum { SAVES = STOPS, BUSY, QUESTIONS };
    int64_t asked[QUESTIONS];
    save_signal = 0;
    for (int i = 0; i < STOPS; i++) asked[i] = stop_signal == stops[i].number;
    asked[SAVES] = job->save_asked || saves;
    asked[BUSY] = hrt_cli_saves_busy(&job->saves);
    if (job->run->program->world)
        hrt_net_comm_all_reduce(job->run->comm, asked, QUESTIONS, HRT_INT64);
    job->save_asked = asked[SAVES];
    if (!asked[BUSY]) finish_save(job);
    for (int i = 0; i < STOPS; i++) {
        if (!asked[i]) continue;
        stop_signal = stops[i].number;
        return true;
    }
    return false; // Even if one has come meanwhile: the others do not know of it.
}

// A step, and the checkpoint that is due after it.
static bool take_and_save(struct job *job, int64_t number, struct hrt_error *error) {
    if (!take_step(job, number, error)) return false;
    if (!hrt_cli_saves_due(&job->saves, number + 1) && !job->save_asked) return true;
    job->save_asked = false;
    return number + 1 == job->config->train_steps ||
           checkpoint(job, error); // The last one is saved at the end.
}

// GFLOP/s that a rank could reach, where that can be measured: kernels on a processor.
static double measure_peak(const struct job *job) {
    const struct hrt_program *program = job->run->program;
    if (hrt_device_is_apart(&job->state.device)) return 0;
    if (program->precision == HRT_FP64) return hk_peak_f64();
    return program->bind_rounded ? hk_peak_bf16() : hk_peak_f32();
}

static void begin_log(struct job *job) {
    if (!job->log.file && !job->board.file && !job->metrics.loopback) return;
    job->peak = 1e9 * measure_peak(job);
    const struct hrt_log_run run = {.trainer = &job->trainer,
                                    .instructions = hk_isa_name(hk_isa()),
                                    .threads = hrt_cli_openmp_threads(),
                                    .from = job->saves.from.step,
                                    .peak = job->peak};
    hrt_log_jsonl_begin(&job->log, hrt_log_of_run(&run));
}

static bool train(struct job *job, struct hrt_error *error) {
    const struct hrt_program *program = job->run->program;
    const struct hrt_trainer *trainer = &job->trainer;
    if (leads(job->run)) hrt_cli_opening_warnings(trainer);
    hrt_cli_opening_data(&job->data);
    print_what_is_kept(job);
    hrt_cli_opening_run(trainer);
    // A launcher gives ranks a terminal of its own, even where it redirects their output.
    hrt_log_progress_start(&job->progress, stdout, job->config->train_steps, job->config->log_every,
                           program->loads > 0, trainer->comm->size == 1);
    begin_log(job);
    job->progress.peak = job->peak * trainer->comm->size;
    job->progress.data = &job->data;
    watch_signals(leads(job->run));
    hrt_net_comm_be_patient(trainer->comm, false);
    const double start = hrt_base_now();
    bool done = true;
    for (int64_t i = job->last.step;
         done && i < job->config->train_steps && !is_exhausted(job) && !is_stopped(job); i++)
        done = take_and_save(job, i, error);
    struct hrt_error second; // Remaining reports are printed, even if the run failed.
    done = tell_all_but(job, 0, done ? error : &second) && done;
    job->seconds = hrt_base_now() - start - job->evaluating;
    hrt_net_comm_be_patient(trainer->comm, true);
    hrt_log_progress_end_line(&job->progress);
    return done;
}

// Writes the parameters of the last step that was taken, before anything else that can fail. All ranks.
static bool save(struct job *job, struct hrt_error *error) {
    const struct hrt_run *run = job->run;
    const char *path = run->arguments->save;
    if (!path || job->last.step == 0) return true; // Nothing is better than what is there.
    if (!write_params(job, path, error)) return false;
    printf("saved: %s\n", path);
    return true;
}

// A run that failed keeps what it has learned, unless a rank failed alone: then the others do not come.
static void rescue(struct job *job, const struct hrt_error *failed) {
    struct hrt_error lost = {0};
    if (job->run->comm->size > 1 && !failed->shared) return;
    if (!save(job, &lost) && *lost.text) hrt_warn(job->run->program->name, "%s", lost.text);
    lost = (struct hrt_error){0};
    if (!checkpoint_end(job, &lost) && *lost.text)
        hrt_warn(job->run->program->name, "%s", lost.text);
}

static bool finish(struct job *job, struct hrt_error *error) {
    const struct hrt_arguments *arguments = job->run->arguments;
    struct hrt_error lost;
    print_summary(job);
    const bool saved = save(job, error) && checkpoint_end(job, error);
    if (!hrt_log_jsonl_close(&job->log, &lost)) go_on_without(job, &lost);
    if (!hrt_log_tensorboard_close(&job->board, &lost)) go_on_without(job, &lost);
    hrt_route_finish(&job->route);
    if (!hrt_profile_finish(job->trainer.profile, stdout, &lost)) go_on_without(job, &lost);
    if (!saved) return false;
    if (!arguments->sample || is_stopped(job)) return true;
    return hrt_sample(&job->sampler, &job->state, arguments->prompt, arguments->sample, stdout,
                      error);
}

static const char *stop_name(void) {
    for (int i = 0; i < STOPS; i++) {
        if (stops[i].number == stop_signal) return stops[i].name;
    }
    return "";
}

static int check_grad(const struct hrt_run *run, struct hrt_error *error) {
    struct hrt_state state;
    if (!hrt_cli_run_create_state(run, &state, NULL, false, error)) return (int)error->code;
    const bool done =
        hrt_train_check_grad(&state, run->arguments->check_grad,
                             (uint64_t)run->arguments->config.train_seed, stdout, error);
    if (!done) hrt_cli_run_report(run, error);
    hrt_train_state_destroy(&state);
    return done ? HRT_EXIT_DONE : (int)error->code;
}

int hrt_cli_command_train(const struct hrt_run *run, struct hrt_error *error) {
    if (run->arguments->check_grad) return check_grad(run, error);
    signal(SIGPIPE, SIG_IGN); // A write that nobody reads then fails.
    struct job job = {.run = run, .config = &run->arguments->config, .state.program = run->program};
    const bool prepared = prepare(&job, error) && open_profile(&job, error);
    const bool trained = prepared && train(&job, error);
    if (prepared && !trained) rescue(&job, error);
    const bool done = trained && finish(&job, error);
    int code = done ? HRT_EXIT_DONE : (int)error->code;
    if (done && is_stopped(&job)) {
        printf("stopped by %s after step %" PRId64 "\n", stop_name(), job.last.step);
        code = 128 + stop_signal;
    }
    if (!done) hrt_cli_run_report(run, error);
    struct hrt_error close_error;
    hrt_log_jsonl_close(&job.log, &close_error); // Only open when something failed before.
    hrt_log_tensorboard_close(&job.board, &close_error);
    hrt_log_metrics_close(&job.metrics);
    hrt_route_close(&job.route);
    hrt_cli_saves_close(&job.saves);
    struct hrt_profile *profile = job.trainer.profile;
    hrt_train_trainer_destroy(&job.trainer);
    hrt_train_state_destroy(&job.state);
    hrt_profile_close(
        profile); // No list of transport is under way any more that it would be told of.
    hrt_data_close(&job.data);
    hrt_sample_sampler_close(&job.sampler);
    hk_pretend(NULL);
    return code;
}
