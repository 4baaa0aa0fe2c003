#!/bin/bash
pip install torch
python -c 'print(1)'
