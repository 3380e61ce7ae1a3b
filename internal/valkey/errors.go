package valkey

import (
	"errors"
	"slices"
	"strings"
)

// ReplyError is an error that a server answered: the server is there and speaks.
type ReplyError struct {
	// Code is the first word of the answer, such as LOADING or NOAUTH, and ERR
	// for an answer that begins with no such word.
	Code string
	// Message is the answer without the word ERR.
	Message string
}

const generalCode = "ERR"

// NewReplyError makes one from the text of an error answer.
func NewReplyError(message string) *ReplyError {
	message = strings.TrimPrefix(message, generalCode+" ")
	code, _, _ := strings.Cut(message, " ")
	if strings.Trim(code, "ABCDEFGHIJKLMNOPQRSTUVWXYZ") != "" {
		code = generalCode
	}
	return &ReplyError{Code: code, Message: message}
}

func (e *ReplyError) Error() string { return "server answered: " + e.Message }

// Answered tells whether the server spoke: no error, or one that it sent. A
// server that answers is alive, whatever it says.
func Answered(err error) bool {
	var reply *ReplyError
	return err == nil || errors.As(err, &reply)
}

// IsLoading tells that the server still reads its dataset.
func IsLoading(err error) bool { return hasCode(err, "LOADING") }

// IsNoAuth tells that the server does not accept who we are: no credentials
// given, or wrong ones.
func IsNoAuth(err error) bool { return hasCode(err, "NOAUTH", "WRONGPASS") }

// IsNoPerm tells that the server knows us and forbids us this command.
func IsNoPerm(err error) bool { return hasCode(err, "NOPERM") }

// IsBusy tells that a script or function keeps the server from answering.
func IsBusy(err error) bool { return hasCode(err, "BUSY") }

// IsMisconf tells that the server cannot write to its disk and refuses writes.
func IsMisconf(err error) bool { return hasCode(err, "MISCONF") }

// IsRewriting tells that the server writes its append-only file anew already.
func IsRewriting(err error) bool {
	var reply *ReplyError
	return errors.As(err, &reply) && strings.Contains(reply.Message, "rewriting already in progress")
}

// IsSettingRefusal tells that the server does not take a setting for what it is:
// it knows none of that name, the value is wrong, or it takes it only at its start.
func IsSettingRefusal(err error) bool {
	var reply *ReplyError
	return errors.As(err, &reply) &&
		(strings.HasPrefix(reply.Message, "CONFIG SET failed") || strings.HasPrefix(reply.Message, "Unknown option"))
}

func hasCode(err error, codes ...string) bool {
	var reply *ReplyError
	return errors.As(err, &reply) && slices.Contains(codes, reply.Code)
}
