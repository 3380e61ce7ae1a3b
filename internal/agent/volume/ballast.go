package volume

import (
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// The size of the ballast: 1 % of the volume within bounds. The lower bound
// holds the server's last words with room to spare, the upper one keeps large
// volumes from wasting space, and no small volume gives up more than 5 %.
const (
	ballastShare    = 100
	ballastShareMax = 20
	leastBallast    = 16 << 20
	// MostBallast is the size of the largest ballast, in bytes.
	MostBallast = 256 << 20
)

// BallastSize is how large the ballast of a volume of so many bytes shall be.
func BallastSize(total int64) int64 {
	size := min(max(total/ballastShare, leastBallast), MostBallast)
	return min(size, total/ballastShareMax)
}

const ballastFile = "ballast"

// Ballast is the size of the ballast that is in place, in bytes; 0: none.
func Ballast(data string) int64 {
	size, _ := fileSize(ownFile(data, ballastFile))
	return size
}

// AddBallast makes the ballast larger by at most step bytes, up to size, of
// space that is really taken. On an error it is what it was before. The caller
// has made sure that there is space to spare.
func AddBallast(data string, size, step int64) (err error) {
	file, err := os.OpenFile(ownFile(data, ballastFile), os.O_WRONLY|os.O_CREATE, 0o600)
	if err != nil {
		return fmt.Errorf("opening the ballast: %w", err)
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	info, err := file.Stat()
	if err != nil {
		return fmt.Errorf("opening the ballast: %w", err)
	}
	from := info.Size()
	count := min(size-from, step)
	if count <= 0 {
		return nil
	}
	if err := allocate(file, from, count); err != nil {
		return errors.Join(fmt.Errorf("making the ballast: %w", err), file.Truncate(from))
	}
	return nil
}

// allocate takes space: by the file system's own means, or by writing.
func allocate(file *os.File, from, count int64) error {
	err := unix.Fallocate(int(file.Fd()), 0, from, count)
	if !errors.Is(err, syscall.EOPNOTSUPP) && !errors.Is(err, syscall.ENOSYS) {
		return err
	}
	return writeZeros(file, from, count)
}

// zeros is what is written at a time: the memory that the agent has is the server's.
const zeros = 64 << 10

func writeZeros(file io.WriterAt, from, count int64) error {
	block := make([]byte, min(zeros, count))
	for end := from + count; from < end; from += int64(len(block)) {
		if _, err := file.WriteAt(block[:min(int64(len(block)), end-from)], from); err != nil {
			return err
		}
	}
	return nil
}

// ReleaseBallast gives the ballast's space back and says whether there was any.
// It takes no space itself.
func ReleaseBallast(data string) (released bool, err error) {
	err = os.Remove(ownFile(data, ballastFile))
	if errors.Is(err, fs.ErrNotExist) {
		return false, nil
	}
	return err == nil, err
}
