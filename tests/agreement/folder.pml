/* The two halves of a cell in a folder (src/agree/file_store.cc): ranks look and propose step by step,
 * while somebody removes everything file by file, one half after the other, in any order within a half.
 * No two ranks come out with different values.
 *
 * Broken on purpose, each must be found:
 *   -DMUTANT_ONCE    there is only one half;
 *   -DMUTANT_NONCE   what is found is believed without a look at the nonces;
 *   -DMUTANT_MIRROR  what is found in the first half is not put into the second.
 */
#define RANKS 3
#define FIRST 0
#define SECOND 1

byte copy[2];   /* of the cell: 0, or the value of whoever has linked it there */
bool nonce[2] = true;
byte used;      /* by whoever came out first */

/* One reading of a file, or one link(), is one step; nothing else is. */

inline look(found) {
  /* found: 0 nothing, else a value; jumps to failed when something is wrong */
  found = copy[FIRST];
#ifndef MUTANT_ONCE
  other = copy[SECOND];
  if
  :: found == 0 && other != 0 ->
    found = copy[FIRST]; /* published between the two looks? */
    if
    :: found == 0 -> goto failed
    :: else
    fi
  :: else
  fi;
#ifndef MUTANT_MIRROR
  if
  :: found != 0 && other == 0 ->
    atomic {
      if
      :: copy[FIRST] != 0 && copy[SECOND] == 0 -> copy[SECOND] = copy[FIRST]
      :: else
      fi
    }
    other = copy[SECOND]
  :: else
  fi;
  if
  :: found != other -> goto failed
  :: else
  fi;
#endif
#endif
#ifdef MUTANT_NONCE
  if
  :: found == 0 && !nonce[FIRST] -> goto failed
  :: else
  fi;
  if
  :: found == 0 && !nonce[SECOND] -> goto failed
  :: else
  fi
#else
  if
  :: !nonce[FIRST] -> goto failed
  :: else
  fi;
  if
  :: !nonce[SECOND] -> goto failed
  :: else
  fi
#endif
}

proctype Rank(byte mine) {
  byte stands, other;

  look(stands);
  if
  :: stands == 0 ->
    atomic {
      if
      :: copy[FIRST] == 0 -> copy[FIRST] = mine
      :: else
      fi
    }
    look(stands);
    if
    :: stands == 0 -> goto failed
    :: else
    fi
  :: else
  fi;
  d_step {
    assert(used == 0 || used == stands);
    used = stands
  }
failed:
  skip
}

inline remove_all(part) {
  if
  :: copy[part] = 0; nonce[part] = false
  :: nonce[part] = false; copy[part] = 0
  fi
}

proctype Vandal() {
  if
  :: remove_all(FIRST); remove_all(SECOND)
  :: remove_all(SECOND); remove_all(FIRST)
  fi
}

init {
  byte rank = 1;

  atomic {
    do
    :: rank <= RANKS -> run Rank(rank); rank++
    :: else -> break
    od;
    run Vandal()
  }
}
