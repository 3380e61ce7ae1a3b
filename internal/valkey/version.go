package valkey

import (
	"strconv"
	"strings"
)

// oldestMajor is the first version that Valkey had.
const oldestMajor = 7

// DumpFormat is the format in which a server of a version writes its dumps, and
// the beginnings of its append-only files: a server reads its own and all
// earlier ones. It is not known of what is no version of Valkey's.
func DumpFormat(version string) (format int, known bool) {
	major, _, _ := strings.Cut(version, ".")
	number, err := strconv.Atoi(major)
	switch {
	case err != nil || number < oldestMajor:
		return 0, false
	case number < 9:
		return 11, true // REDIS0011
	default:
		return 80, true // VALKEY080
	}
}
