package valkey

import (
	"slices"
	"strings"
)

// restartOnly are the settings that some supported version takes only at its
// start. Each version's own answer is held against them by a contract test.
var restartOnly = []string{
	"aclfile", "always-show-logo", "aof-rewrite-cpulist", "appenddirname", "appendfilename", "bgsave-cpulist", "bio-cpulist",
	"cluster-config-file", "cluster-databases", "cluster-enabled", "cluster-port", "daemonize", "databases", "disable-thp",
	"enable-debug-command", "enable-module-command", "enable-protected-configs", "hash-seed", "io-threads", "logfile", "mptcp",
	"pidfile", "rdbchecksum", "rdma-completion-vector", "rdma-rx-size", "repl-mptcp", "replicaof", "server-cpulist",
	"set-proc-title", "slaveof", "socket-mark-id", "supervised", "syslog-enabled", "syslog-facility", "syslog-ident",
	"tcp-backlog", "unixsocket", "unixsocketgroup", "unixsocketperm",
}

// RestartOnly says whether a setting may have to wait for a server's start. One
// that a newer version takes at any time, and an older one does not, is among
// them: io-threads is, since 9.0 came.
func RestartOnly(setting string) bool {
	_, found := slices.BinarySearch(restartOnly, strings.ReplaceAll(setting, "_", "-"))
	return found
}

// SettingArgument is a setting's value in a configuration file as the one
// argument that CONFIG SET takes for it: without quotes, the words of a list
// with one space between them. A value whose quotes do not end is taken as it is.
func SettingArgument(value string) string {
	words, whole := fileWords(value)
	if !whole {
		return value
	}
	return strings.Join(words, " ")
}

// SettingLine is a line of a configuration file that gives a setting the one
// argument that CONFIG SET takes for it.
func SettingLine(setting, argument string) string { return setting + " " + fileWord(argument) }

// ParseSettingLine reads what SettingLine wrote. Any other line is none.
func ParseSettingLine(line string) (setting, argument string, ok bool) {
	words, whole := fileWords(line)
	if !whole || len(words) != 2 || strings.HasPrefix(words[0], "#") {
		return "", "", false
	}
	return words[0], words[1], true
}

// fileWord is an argument as one word of a configuration file.
func fileWord(argument string) string {
	plain := func(c rune) bool { return c > ' ' && c != '"' && c != '\'' && c != '\\' && c != 0x7f }
	if argument != "" && strings.IndexFunc(argument, func(c rune) bool { return !plain(c) }) < 0 {
		return argument
	}
	const hex = "0123456789abcdef"
	var word strings.Builder
	word.WriteByte('"')
	for _, c := range []byte(argument) {
		switch {
		case c == '"' || c == '\\':
			word.WriteByte('\\')
			word.WriteByte(c)
		case c < ' ':
			word.WriteString(`\x` + hex[c>>4:c>>4+1] + hex[c&15:c&15+1])
		default:
			word.WriteByte(c)
		}
	}
	word.WriteByte('"')
	return word.String()
}

// fileWords are the words of a line of a configuration file, read as the server
// does. It is not whole when quotes do not end, or end within a word.
func fileWords(line string) (words []string, whole bool) {
	for {
		line = strings.TrimLeft(line, " \t\r\n\v\f\x00")
		if line == "" {
			return words, true
		}
		word, rest, ended := fileWordOf(line)
		if !ended {
			return nil, false
		}
		words, line = append(words, word), rest
	}
}

// fileWordOf reads one word, and says whether it ended as it must.
func fileWordOf(line string) (word, rest string, ended bool) {
	var out strings.Builder
	for line != "" {
		switch c := line[0]; {
		case isSpace(c):
			return out.String(), line, true
		case c == '"' || c == '\'':
			length, closed := readQuoted(line, &out)
			line = line[length:]
			return out.String(), line, closed && (line == "" || isSpace(line[0]))
		default:
			out.WriteByte(c)
			line = line[1:]
		}
	}
	return out.String(), "", true
}

func isSpace(c byte) bool { return strings.IndexByte(" \t\r\n\v\f\x00", c) >= 0 }

// readQuoted reads from one quote to the next of its kind, and says whether
// there is one.
func readQuoted(line string, out *strings.Builder) (length int, closed bool) {
	quote := line[0]
	for i := 1; i < len(line); {
		if line[i] == quote {
			return i + 1, true
		}
		char, taken := line[i], 1
		if char == '\\' && i+1 < len(line) {
			char, taken = escaped(line[i:], quote)
		}
		out.WriteByte(char)
		i += taken
	}
	return len(line), false
}

// escaped is the character that a backslash and what follows it stand for: in
// single quotes only a quote can be escaped.
func escaped(text string, quote byte) (char byte, taken int) {
	if quote == '\'' {
		if text[1] == '\'' {
			return '\'', 2
		}
		return '\\', 1
	}
	const hexEscape = len(`\x00`)
	if text[1] == 'x' && len(text) >= hexEscape {
		if high, low := hexDigit(text[2]), hexDigit(text[3]); high >= 0 && low >= 0 {
			return byte(high<<4 | low), hexEscape
		}
	}
	if at := strings.IndexByte("nrtba", text[1]); at >= 0 {
		return "\n\r\t\b\a"[at], 2
	}
	return text[1], 2
}

// hexDigit is the value of a hexadecimal digit, or less than 0.
func hexDigit(c byte) int { return strings.IndexByte("0123456789abcdef", c|0x20) }

// fatalConfig is how a server begins its last words when it cannot read its settings.
const fatalConfig = "FATAL CONFIG FILE ERROR"

// SettingRefusal is what the last words of a server say of the setting that kept
// it from starting, if one did: the line, and what is wrong with it.
func SettingRefusal(lastWords string) (refusal string, found bool) {
	_, after, found := strings.Cut(lastWords, fatalConfig)
	if !found {
		return "", false
	}
	if _, quote, told := strings.Cut(after, ">>> "); told {
		after = quote
	}
	return strings.Join(strings.Fields(after), " "), true
}
