package apply

import (
	"context"
	"errors"
	"fmt"

	"valkey.io/valkey-operator/api/v1alpha1"
	"valkey.io/valkey-operator/internal/name"
	"valkey.io/valkey-operator/internal/plan"
	"valkey.io/valkey-operator/internal/valkey"
)

// doServer performs the actions that talk to a Valkey server.
func (a Applier) doServer(ctx context.Context, action plan.Action) error {
	switch act := action.(type) {
	case plan.MeetNode:
		return a.tell(ctx, act.Via, func(ctx context.Context, server valkey.Server) error {
			return server.Meet(ctx, act.Host, act.Port, act.BusPort)
		})
	case plan.AssignSlots:
		return a.tell(ctx, act.To, func(ctx context.Context, server valkey.Server) error {
			return server.AddSlots(ctx, act.Slots)
		})
	case plan.AttachReplica:
		return a.tell(ctx, act.Replica, func(ctx context.Context, server valkey.Server) error {
			return server.Replicate(ctx, act.Primary)
		})
	case plan.TakeOver:
		return a.tell(ctx, act.Replica, func(ctx context.Context, server valkey.Server) error {
			return server.Failover(ctx, valkey.Takeover)
		})
	case plan.FailOver:
		return a.tell(ctx, act.Replica, failOver)
	case plan.ForgetNode:
		return a.tell(ctx, act.From, func(ctx context.Context, server valkey.Server) error {
			return server.Forget(ctx, act.ID)
		})
	case plan.RewriteLog:
		return a.tell(ctx, act.Server, func(ctx context.Context, server valkey.Server) error {
			return server.RewriteLog(ctx)
		})
	case plan.SetConfig:
		return a.setConfig(ctx, act)
	case plan.StartEmpty:
		return a.startEmpty(ctx, act)
	default:
		return fmt.Errorf("no hand knows how to %s", action)
	}
}

// failOver asks a replica that is linked to its primary. A server asks for equal
// offsets alone, and after a restart of both those are equal without any data.
func failOver(ctx context.Context, replica valkey.Server) error {
	view, err := replica.View(ctx)
	if err != nil {
		return err
	}
	if !view.Info.Replication.Primary.InSync() {
		return errors.New("it is not in sync with a primary any more")
	}
	return replica.Failover(ctx, valkey.Graceful)
}

// tell opens a connection to one server for one command.
func (a Applier) tell(ctx context.Context, to plan.Server, command func(context.Context, valkey.Server) error) error {
	ctx, cancel := context.WithTimeout(ctx, serverPatience)
	defer cancel()
	server, err := a.Dial(ctx, valkey.Target{Address: to.Address, Username: name.UserOperator, Password: a.Login})
	if err != nil {
		return fmt.Errorf("connecting to node %s: %w", to.Node, err)
	}
	defer server.Close()
	return command(ctx, server)
}

// startEmpty commands an agent, which checks that its member is still held like that.
func (a Applier) startEmpty(ctx context.Context, act plan.StartEmpty) error {
	ctx, cancel := context.WithTimeout(ctx, serverPatience)
	defer cancel()
	return a.Command(ctx, act.Host, a.Login, act.To, act.Command)
}

// setConfig gives a server settings. What it does not take for what it is comes
// back as a refusal, in the server's words.
func (a Applier) setConfig(ctx context.Context, act plan.SetConfig) error {
	err := a.tell(ctx, act.To, func(ctx context.Context, server valkey.Server) error {
		return server.ConfigSetAll(ctx, act.Settings)
	})
	if !valkey.IsSettingRefusal(err) {
		return err
	}
	message := err.Error()
	if reply, is := errors.AsType[*valkey.ReplyError](err); is {
		message = reply.Message
	}
	return &plan.Refusal{Reason: v1alpha1.ReasonConfigRefused, Message: message, Err: err}
}
