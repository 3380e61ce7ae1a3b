package valkey

import (
	"bufio"
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"io"
	"math"
	"strconv"
	"strings"
)

// The opcodes of a dump that may stand before its first key, and the two that
// can only stand right before a key or after the last one.
const (
	opSlotInfo     = 244 // slot number, its keys, its keys that expire
	opFunction     = 245
	opModuleAux    = 247
	opIdle         = 248
	opFrequency    = 249
	opAux          = 250
	opResizeDB     = 251
	opExpireMillis = 252
	opExpire       = 253
	opSelectDB     = 254
	opEnd          = 255

	// lastValueType leaves room above the types that servers know today (under
	// 30): they are numbered upwards from 0, opcodes downwards from 255.
	lastValueType = 127
)

// magicLength is the length of REDIS0011 and of VALKEY080 alike.
const magicLength = 9

// RDBHoldsKeys reads the start of a dump, no further than its first key, and
// tells whether there is one. A dump that is cut or not understood before that
// point is an error: what it holds is unknown.
func RDBHoldsKeys(r io.Reader) (holds bool, err error) {
	head := rdbHead{Reader: bufio.NewReader(r)}
	if err := head.magic(); err != nil {
		return false, fmt.Errorf("dump: %w", err)
	}
	for {
		opcode, err := head.ReadByte()
		if err != nil {
			return false, fmt.Errorf("dump: %w", cut(err))
		}
		if opcode == opEnd {
			return false, nil
		}
		if isKeyAhead(opcode) {
			return true, nil
		}
		if err := head.skip(opcode); err != nil {
			return false, fmt.Errorf("dump, opcode %d: %w", opcode, cut(err))
		}
	}
}

// cut makes the end of the file the error that it is in the middle of something.
func cut(err error) error {
	if errors.Is(err, io.EOF) {
		return io.ErrUnexpectedEOF
	}
	return err
}

func isKeyAhead(opcode byte) bool {
	switch opcode {
	case opIdle, opFrequency, opExpireMillis, opExpire:
		return true
	}
	return opcode <= lastValueType
}

type rdbHead struct{ *bufio.Reader }

func (h rdbHead) magic() error {
	start := make([]byte, magicLength)
	if _, err := io.ReadFull(h, start); err != nil {
		return cut(err)
	}
	version, isDump := strings.CutPrefix(string(start), "REDIS")
	if !isDump {
		version, isDump = strings.CutPrefix(string(start), "VALKEY")
	}
	if _, err := strconv.ParseUint(version, 10, 16); !isDump || err != nil {
		return errors.New("no dump begins like this")
	}
	return nil
}

func (h rdbHead) skip(opcode byte) error {
	switch opcode {
	case opAux:
		return h.skipEach(h.skipString, h.skipString)
	case opFunction:
		return h.skipString()
	case opSelectDB:
		return h.skipLength()
	case opResizeDB:
		return h.skipEach(h.skipLength, h.skipLength)
	case opSlotInfo:
		return h.skipEach(h.skipLength, h.skipLength, h.skipLength)
	case opModuleAux:
		return h.skipModule()
	}
	return errors.New("not known")
}

func (h rdbHead) skipEach(skips ...func() error) error {
	for _, skip := range skips {
		if err := skip(); err != nil {
			return err
		}
	}
	return nil
}

func (h rdbHead) skipBytes(count uint64) error {
	if count > math.MaxInt64 {
		return errors.New("a length beyond all files")
	}
	_, err := io.CopyN(io.Discard, h, int64(count))
	return err
}

func (h rdbHead) skipLength() error {
	_, err := h.length()
	return err
}

// The encodings of a string that is no run of bytes.
const (
	encodedInt8 = iota
	encodedInt16
	encodedInt32
	encodedCompressed
)

func (h rdbHead) skipString() error {
	first, err := h.ReadByte()
	if err != nil {
		return err
	}
	if first>>6 == 3 {
		return h.skipEncoded(first & 0x3f)
	}
	count, err := h.lengthFrom(first)
	if err != nil {
		return err
	}
	return h.skipBytes(count)
}

func (h rdbHead) skipEncoded(encoding byte) error {
	switch encoding {
	case encodedInt8, encodedInt16, encodedInt32:
		return h.skipBytes(1 << encoding)
	case encodedCompressed:
		compressed, err := h.length()
		if err != nil {
			return err
		}
		if err := h.skipLength(); err != nil {
			return err
		}
		return h.skipBytes(compressed)
	}
	return fmt.Errorf("string encoding %d is not known", encoding)
}

func (h rdbHead) length() (uint64, error) {
	first, err := h.ReadByte()
	if err != nil {
		return 0, err
	}
	return h.lengthFrom(first)
}

// lengthFrom decodes a length by its first byte: 6 bits, 14 bits, or after
// 0x80 and 0x81 a whole 32 or 64 bit number, all with the high byte first.
func (h rdbHead) lengthFrom(first byte) (uint64, error) {
	switch {
	case first>>6 == 0:
		return uint64(first), nil
	case first>>6 == 1:
		second, err := h.ReadByte()
		return uint64(first&0x3f)<<8 | uint64(second), err
	case first == 0x80:
		return h.number(4)
	case first == 0x81:
		return h.number(8)
	}
	return 0, fmt.Errorf("length encoding %#x is not known", first)
}

func (h rdbHead) number(bytes int) (uint64, error) {
	var whole [8]byte
	_, err := io.ReadFull(h, whole[8-bytes:])
	return binary.BigEndian.Uint64(whole[:]), err
}

// skipModule passes over what a module keeps beside the keys: its id, the two
// lengths that say when it was saved, and values each with its kind, up to kind 0.
func (h rdbHead) skipModule() error {
	if err := h.skipEach(h.skipLength, h.skipLength, h.skipLength); err != nil {
		return err
	}
	for {
		kind, err := h.length()
		if err != nil || kind == 0 {
			return err
		}
		if err := h.skipModuleValue(kind); err != nil {
			return err
		}
	}
}

func (h rdbHead) skipModuleValue(kind uint64) error {
	switch kind {
	case 1, 2: // whole numbers
		return h.skipLength()
	case 3: // float
		return h.skipBytes(4)
	case 4: // double
		return h.skipBytes(8)
	case 5:
		return h.skipString()
	}
	return fmt.Errorf("module value of kind %d is not known", kind)
}

// RDBFormat is the name of a dump's format, as it begins: REDIS0011, or VALKEY080
// since 9.0.
func RDBFormat(r io.Reader) (string, error) {
	start := make([]byte, magicLength)
	if _, err := io.ReadFull(r, start); err != nil {
		return "", fmt.Errorf("dump: %w", cut(err))
	}
	if err := (rdbHead{bufio.NewReader(bytes.NewReader(start))}).magic(); err != nil {
		return "", fmt.Errorf("dump: %w", err)
	}
	return string(start), nil
}
