package plan

import "time"

// RefusalPatience is how long a refusal is taken at its word before the same is
// asked for again. Quotas and limits change without a watch of ours.
const RefusalPatience = 15 * time.Second

// Refusal is the API server's no to an action that was asked in earnest: a
// quota, a limit, a class or a validation rule forbids it. Asking again at
// once is no use; a person must change something.
type Refusal struct {
	Reason  string // one constant of api/v1alpha1
	Message string // the server's own words
	Err     error
}

// Error is the server's own words.
func (r *Refusal) Error() string { return r.Message }

// Unwrap returns the error that the server answered with.
func (r *Refusal) Unwrap() error { return r.Err }
