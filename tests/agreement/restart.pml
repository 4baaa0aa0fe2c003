/* The server of a store at tcp:// that is killed and restarted with its file (src/cell_server/cell_server.cc), and
 * clients that reconnect (src/agree/tcp_store.cc). The server handles requests in its memory, writes the file, and
 * only then replies; it may be killed between any two steps. What it had not yet written may be in its file or not. A
 * client whose connection is lost connects again, names the nonce that it knows, and repeats its request. The file may
 * also be removed while the server is down: then there is another nonce, and nothing that was known is believed.
 *
 * No two clients that know the same nonce come out with different values, and no client sees a value change or vanish.
 *
 * Broken on purpose, each must be found:
 *   -DMUTANT_EARLY   the server replies before its file is written;
 *   -DMUTANT_NONCE   a client that reconnects accepts another nonce;
 *   -DMUTANT_LOAD    a server that is restarted has the job, and not its cells;
 *   -DMUTANT_LINK    a client keeps its connection when it gives up on a reply, and reads that reply later.
 */
#define CLIENTS 2
#define KILLS 2
#define NOTHING 0   /* no request, no reply */
#define READ 9
#define EMPTY 8     /* a reply: the cell has no value */

bool up = true;
byte nonce = 1;             /* of the job, in the file; 1, 2, ...: the file was removed in between */
byte table, file;           /* the cell in memory and on the disk; 0: empty */
bool unwritten;             /* memory has what the file lacks */
bool linked[CLIENTS];
byte request[CLIENTS];      /* NOTHING, READ, or the value that is proposed */
byte answer[CLIENTS];       /* handled, and not sent yet */
bool written[CLIENTS];      /* the answer may be sent */
byte reply[CLIENTS];        /* sent, and not read yet */
byte used[KILLS + 2];       /* by the first client that came out, per nonce */

inline handle(c) {
  atomic {
    up && linked[c] && request[c] != NOTHING && answer[c] == NOTHING ->
    if
    :: request[c] != READ && table == 0 -> table = request[c]; unwritten = true
    :: else
    fi;
    answer[c] = (table == 0 -> EMPTY : table);
    request[c] = NOTHING;
#ifdef MUTANT_EARLY
    written[c] = true
#else
    written[c] = false
#endif
  }
}

inline send(c) {
  atomic {
    up && linked[c] && answer[c] != NOTHING && written[c] && reply[c] == NOTHING ->
    reply[c] = answer[c];
    answer[c] = NOTHING
  }
}

inline drop(c) {
  linked[c] = false; request[c] = NOTHING; answer[c] = NOTHING; reply[c] = NOTHING
}

active proctype Server() {
  byte kills;
  do
  :: handle(0)
  :: handle(1)
  :: send(0)
  :: send(1)
  :: atomic { up && (answer[0] != NOTHING || answer[1] != NOTHING) ->
      file = table; unwritten = false;
      written[0] = true; written[1] = true }
  :: atomic { up && kills < KILLS ->
      kills++;
      up = false;
      if
      :: unwritten -> file = table   /* the last batch had reached the disk, and was not acknowledged */
      :: true
      fi;
      table = 0; unwritten = false;
      drop(0); drop(1) }
  :: atomic { !up ->
      if
      :: true
      :: nonce <= KILLS -> nonce++; file = 0
      fi;
#ifdef MUTANT_LOAD
      table = 0;
#else
      table = file;
#endif
      up = true }
  :: timeout -> break
  od
}

/* Sends a request until a reply has come; `got` is the reply. Jumps to failed if the cells are lost. */
inline ask(what) {
  got = NOTHING;
  do
  :: got != NOTHING -> break
  :: got == NOTHING && !linked[me] ->
    atomic {
      up;
#ifndef MUTANT_NONCE
      if
      :: known != 0 && known != nonce -> goto failed
      :: else
      fi;
#endif
      known = nonce;
      linked[me] = true
    };
    asked = false
  :: got == NOTHING && linked[me] && !asked ->
    atomic {
      if
      :: linked[me] -> request[me] = what; asked = true
      :: else
      fi
    }
  :: atomic { got == NOTHING && linked[me] && asked && reply[me] != NOTHING ->
      got = reply[me]; reply[me] = NOTHING; asked = false }
  :: atomic { got == NOTHING && linked[me] && asked && patience > 0 ->
      patience--;  /* no answer in time, or no memory for it */
      asked = false;
#ifdef MUTANT_LINK
      request[me] = NOTHING
#else
      drop(me)
#endif
    }
  od
}

proctype Client(byte me) {
  byte known, got, first;
  byte patience = 1;
  bool asked;

  ask(READ);
  first = got;
  ask(me + 1);
  /* A proposal is answered with a value, and with the one that was read where there was one. */
  assert(got != EMPTY);
  assert(first == EMPTY || first == got);
  d_step {
    assert(used[known] == 0 || used[known] == got);
    used[known] = got
  };
  first = got;
  ask(READ);
  assert(got == first);
failed:
  skip
}

init {
  atomic { run Client(0); run Client(1) }
}
