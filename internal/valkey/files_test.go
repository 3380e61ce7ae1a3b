package valkey

import (
	"bytes"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestRDBHoldsKeysOfServers(t *testing.T) {
	t.Parallel()
	for _, version := range []string{"8.1", "9.1"} {
		for name, want := range map[string]bool{"keys": true, "function-only": false, "empty": false} {
			dump := sample(t, name+"-"+version+".rdb")
			holds, err := RDBHoldsKeys(strings.NewReader(dump))
			if err != nil || holds != want {
				t.Errorf("%s of %s: %v, %v", name, version, holds, err)
			}
		}
	}
}

func TestRDBCutAnywhereIsUnknown(t *testing.T) {
	t.Parallel()
	dump := sample(t, "empty-9.1.rdb")
	end := strings.LastIndexByte(dump[:len(dump)-8], opEnd) // eight bytes of checksum follow
	for length := range end {
		if holds, err := RDBHoldsKeys(strings.NewReader(dump[:length])); !errors.Is(err, io.ErrUnexpectedEOF) {
			t.Fatalf("cut after %d bytes: %v, %v", length, holds, err)
		}
	}
}

func TestRDBHoldsKeys(t *testing.T) {
	t.Parallel()
	const head = "REDIS0011"
	tests := map[string]struct {
		dump          string
		holds, failed bool
	}{
		"a key without expiry":               {dump: head + "\xfe\x00\xfb\x01\x00\x00", holds: true},
		"a key that expires":                 {dump: head + "\xfe\x00\xfc", holds: true},
		"a key with its idle time":           {dump: head + "\xf8", holds: true},
		"strings in all encodings":           {dump: head + "\xfa\x01k\xc0\x01\xfa\xc1\x01\x02\xc2\x01\x02\x03\x04\xfa\xc3\x02\x05ab\x40\x01c\xff"},
		"lengths of 32 and 64 bits":          {dump: head + "\xfb\x80\x00\x00\x01\x00\x81\x00\x00\x00\x00\x00\x00\x01\x00\xff"},
		"a slot's numbers":                   {dump: head + "\xf4\x41\x00\x00\x00\xff"},
		"what a module keeps":                {dump: head + "\xf7\x01\x02\x01\x01\x05\x03abcd\x04abcdefgh\x05\x01x\x00\xff"},
		"a module value of the future":       {dump: head + "\xf7\x01\x02\x01\x06\x00\xff", failed: true},
		"an opcode of the future":            {dump: head + "\xf0\x00\xff", failed: true},
		"a string encoding of the future":    {dump: head + "\xfa\xc4", failed: true},
		"a length encoding of the future":    {dump: head + "\xfe\x82", failed: true},
		"a string longer than any file":      {dump: head + "\xfa\x81\xff\xff\xff\xff\xff\xff\xff\xff", failed: true},
		"a file that is no dump":             {dump: "*2\r\n$6\r\nSELECT\r\n", failed: true},
		"zero bytes":                         {dump: strings.Repeat("\x00", 100), failed: true},
		"nothing at all":                     {dump: "", failed: true},
		"a head with letters for its number": {dump: "REDISxxxx\xff", failed: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			holds, err := RDBHoldsKeys(strings.NewReader(test.dump))
			if holds != test.holds || (err != nil) != test.failed {
				t.Errorf("%v, %v", holds, err)
			}
		})
	}
}

func FuzzRDBHoldsKeys(f *testing.F) {
	for _, name := range []string{"keys-8.1.rdb", "keys-9.1.rdb", "function-only-9.1.rdb", "empty-8.1.rdb"} {
		f.Add([]byte(sample(f, name)))
	}
	f.Fuzz(func(t *testing.T, dump []byte) {
		holds, err := RDBHoldsKeys(bytes.NewReader(dump))
		if holds && err != nil {
			t.Errorf("keys and an error: %v", err)
		}
	})
}

func TestParseAOFManifest(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		text   string
		want   []AOFFile
		failed bool
	}{
		"what a server wrote": {
			text: sample(t, "manifest-9.1.txt"),
			want: []AOFFile{
				{Name: "appendonly.aof.2.base.rdb", Seq: 2, Kind: AOFBase},
				{Name: "appendonly.aof.2.incr.aof", Seq: 2, Kind: AOFIncrement},
			},
		},
		"history, offsets, a comment and no base": {
			text: "# kept\nfile a.1.incr.aof seq 1 type h\nfile a.2.incr.aof seq 2 type i startoffset 9 endoffset 10\n",
			want: []AOFFile{{Name: "a.1.incr.aof", Seq: 1, Kind: AOFHistory}, {Name: "a.2.incr.aof", Seq: 2, Kind: AOFIncrement}},
		},
		"a quoted name": {
			text: `file "my \"log\".1.base.rdb" seq 1 type b`,
			want: []AOFFile{{Name: `my "log".1.base.rdb`, Seq: 1, Kind: AOFBase}},
		},
		"an empty manifest":      {text: "\n", failed: true},
		"two bases":              {text: "file a seq 1 type b\nfile b seq 2 type b\n", failed: true},
		"a name with a path":     {text: "file ../a seq 1 type b\n", failed: true},
		"a quote without an end": {text: `file "a seq 1 type b`, failed: true},
		"an unknown type":        {text: "file a seq 1 type x\n", failed: true},
		"a number of letters":    {text: "file a seq one type b\n", failed: true},
		"a line cut short":       {text: "file a seq 1", failed: true},
		"zero bytes":             {text: "\x00\x00\x00", failed: true},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			manifest, err := ParseAOFManifest(test.text)
			if (err != nil) != test.failed {
				t.Fatalf("error %v", err)
			}
			if diff := cmp.Diff(test.want, manifest.Files); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestAOFManifestParts(t *testing.T) {
	t.Parallel()
	manifest, err := ParseAOFManifest(sample(t, "manifest-8.1.txt"))
	if err != nil {
		t.Fatal(err)
	}
	base, has := manifest.Base()
	if increments := manifest.Increments(); !has || base.Kind != AOFBase || len(increments) != 1 || increments[0].Kind != AOFIncrement {
		t.Errorf("base %+v, increments %+v", base, increments)
	}
	if _, has := (AOFManifest{}).Base(); has {
		t.Error("an empty manifest has a base")
	}
}

func FuzzParseAOFManifest(f *testing.F) {
	f.Add(sample(f, "manifest-8.1.txt"))
	f.Add(`file "a\x00b" seq 1 type i`)
	f.Fuzz(func(t *testing.T, text string) {
		manifest, err := ParseAOFManifest(text)
		if err != nil {
			return
		}
		for _, file := range manifest.Files {
			if file.Name == "" || strings.Contains(file.Name, "/") {
				t.Errorf("accepted %+v", file)
			}
		}
	})
}
