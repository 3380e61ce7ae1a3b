package stage

import (
	"context"
	"fmt"
	"runtime"
	"slices"
	"strings"
	"sync"
	"time"
)

// cleanupWithin bounds all that is undone after one journey.
const cleanupWithin = 3 * time.Minute

// Stage is one journey's. Its methods end the journey at the first failure,
// as testing.T's Fatal does, so that a story reads as a list of steps.
type Stage struct {
	*World
	// Name of the journey, and the namespace of its own.
	Name      string
	Namespace string

	scene Scene
	ctx   context.Context //nolint:containedctx // a stage lives as long as its journey, like testing.T
	start time.Time
	// avoid is a worker that the journey's own tools keep away from; empty: none.
	avoid string
	// scratch is a directory for the journey's files; empty until it is needed.
	scratch string

	mu       sync.Mutex
	failure  string
	cleanups []func(context.Context) error
}

// Story is what a journey does.
type Story func(s *Stage)

// Scene is where a story is played.
type Scene struct {
	Name string
	// Namespace of its own; empty means journey-NAME.
	Namespace string
	// Keep leaves the namespace there in the end, KeepFailed only after a
	// failure. All else that was made is undone in any case.
	Keep, KeepFailed bool
}

// Play runs a story in a namespace of its own and cleans up after it, however
// it ends. The failure is empty when all went as told.
func (w *World) Play(ctx context.Context, scene Scene, story Story) (failure string) {
	s := &Stage{World: w, Name: scene.Name, Namespace: or(scene.Namespace, "journey-"+scene.Name), scene: scene, ctx: ctx, start: time.Now()}
	s.perform(func() { s.enter(); story(s) })
	if s.failure != "" {
		// The journey's time may be over; its scene is still there.
		s.diagnose(context.WithoutCancel(ctx))
	}
	s.leave(context.WithoutCancel(ctx))
	return s.failure
}

// perform runs do in a goroutine of its own, which a failure ends.
func (s *Stage) perform(do func()) {
	done := make(chan struct{})
	go func() {
		defer close(done)
		defer func() {
			if p := recover(); p != nil {
				s.note(fmt.Sprintf("the journey itself broke: %v", p))
			}
		}()
		do()
	}()
	<-done
}

// leave undoes what the journey made, last first. What fails here fails the journey.
func (s *Stage) leave(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, cleanupWithin)
	defer cancel()
	s.ctx = ctx
	for _, undo := range slices.Backward(s.cleanups) {
		s.perform(func() {
			if err := undo(ctx); err != nil {
				s.note("cleaning up: " + err.Error())
			}
		})
	}
}

// Cleanup registers what must be undone after the journey, last first.
func (s *Stage) Cleanup(undo func(context.Context) error) { s.cleanups = append(s.cleanups, undo) }

// Context ends with the journey.
func (s *Stage) Context() context.Context { return s.ctx }

// Say writes a step with the time since the journey's start.
func (s *Stage) Say(format string, args ...any) {
	text := strings.TrimRight(fmt.Sprintf(format, args...), "\n")
	s.mu.Lock()
	defer s.mu.Unlock()
	s.Print("  %6.1fs  %s\n", time.Since(s.start).Seconds(), text)
}

// Fail ends the journey. It must be called from the story's own goroutine.
func (s *Stage) Fail(format string, args ...any) {
	s.note(fmt.Sprintf(format, args...))
	runtime.Goexit()
}

// note keeps the first failure, which is the cause of the others.
func (s *Stage) note(failure string) {
	s.Say("FAILED: %s", failure)
	if s.failure == "" {
		s.failure = failure
	}
}

// Expect ends the journey unless ok.
func (s *Stage) Expect(ok bool, format string, args ...any) {
	if !ok {
		s.Fail(format, args...)
	}
}

// NoError ends the journey at an error; doing says what was being done.
func (s *Stage) NoError(err error, doing string) {
	if err != nil {
		s.Fail("%s: %v", doing, err)
	}
}

// pollEvery is how often a condition is asked: short beside the seconds that
// things take here, long beside the cost of asking an API server.
const pollEvery = 250 * time.Millisecond

// Await asks until check says yes and returns how long that took. What it
// waits for, and what was seen last, are in the failure.
func (s *Stage) Await(what string, within time.Duration, check func() (ok bool, seen string)) time.Duration {
	ctx, cancel := context.WithTimeout(s.ctx, within)
	defer cancel()
	begin, tick := time.Now(), time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		ok, seen := check()
		if ok {
			return time.Since(begin)
		}
		select {
		case <-ctx.Done():
			s.Fail("waited %s for %s; seen last: %s", seconds(time.Since(begin)), what, seen)
		case <-tick.C:
		}
	}
}

// Hold ends the journey if check says no within some time: for what must not
// happen there is nothing to wait for. What must hold is in the failure.
func (s *Stage) Hold(what string, during time.Duration, check func() (ok bool, seen string)) {
	end, tick := time.After(during), time.NewTicker(pollEvery)
	defer tick.Stop()
	for {
		ok, seen := check()
		s.Expect(ok, "it did not stay so that %s: %s", what, seen)
		select {
		case <-s.ctx.Done():
			s.Fail("the time of the journey is over while %s", what)
		case <-end:
			s.Say("for %s it stayed so that %s", seconds(during), what)
			return
		case <-tick.C:
		}
	}
}
